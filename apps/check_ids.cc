#include "apps/check_ids.h"

#include <fmt/format.h>

#include "apps/plural.h"

namespace hone {

Status check_vocabulary(const Session& session, std::span<const std::int32_t> ids) {
  const std::int64_t vocabulary = session.model().config.vocabulary;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocabulary) continue;
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 fmt::format("token {} of {}", i + 1, ids.size()),
                 "a token id is outside the vocabulary",
                 fmt::format("0 to {}", vocabulary - 1),
                 fmt::format("{}", ids[i]),
                 {}};
  }
  return {};
}

Status check_length(const Session& session, std::int64_t length) {
  const CompiledModel& model = session.model();
  if (length <= model.context) return {};
  const bool room = model.config.context_length > model.context;
  return Error{ErrorCode::BadInput,
               Fault::User,
               "context",
               "the sequence is longer than the context",
               "at most " + counted(model.context, "token"),
               counted(length, "token"),
               room ? fmt::format("--ctx up to {}, or a shorter text", model.config.context_length)
                    : "a shorter text"};
}

}  // namespace hone
