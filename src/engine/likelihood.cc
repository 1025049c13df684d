#include "engine/likelihood.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace hone {

double negative_log_likelihood(std::span<const float> logits, std::int32_t id) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) largest = std::max(largest, static_cast<double>(logit));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(id)]);
}

namespace {

// Adds what ids[1..] cost after ids[0]; they fit the context.
Status add_window(Session& session, std::span<const std::int32_t> ids, Likelihood& out) {
  const std::int64_t chunk = session.model().plan.bound.find('T').value_or(1);
  const std::int64_t vocabulary = session.model().config.vocabulary;
  const std::int64_t length = std::ssize(ids) - 1;  // of the one pass over all that is fed
  ++out.windows;
  for (std::int64_t at = 0; at < length; at += chunk) {
    const std::int64_t end = std::min(at + chunk, length);
    const std::vector<std::int32_t> part(ids.begin() + at, ids.begin() + end);
    std::vector<Session::Row> rows;
    rows.reserve(static_cast<std::size_t>(end - at));
    for (std::int64_t i = 0; i < end - at; ++i) rows.push_back({0, i});
    const std::span<const float> logits =
        HONE_TRY(session.step({&part, 1}, {&at, 1}, rows, {&length, 1}));  // [rows,V]
    for (std::int64_t i = 0; i < end - at; ++i) {
      out.nll_sum += negative_log_likelihood(
          logits.subspan(static_cast<std::size_t>(i * vocabulary), static_cast<std::size_t>(vocabulary)),
          ids[static_cast<std::size_t>(at + i + 1)]);
      ++out.tokens;
    }
  }
  return {};
}

}  // namespace

Result<Likelihood> likelihood(Session& session, std::span<const std::int32_t> ids) {
  if (ids.size() < 2) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "text",
                 "a likelihood needs a token to predict",
                 "at least 2 tokens",
                 fmt::format("{}", ids.size()),
                 {}};
  }
  const std::int64_t vocabulary = session.model().config.vocabulary;
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < vocabulary) continue;
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "text",
                 "a token id is outside the vocabulary",
                 fmt::format("0 to {}", vocabulary - 1),
                 fmt::format("{}", id),
                 {}};
  }
  Likelihood out;
  const std::int64_t last = std::ssize(ids) - 1;
  for (std::int64_t first = 0; first < last; first += session.model().context) {
    const std::int64_t fed = std::min(session.model().context, last - first);
    HONE_TRY(add_window(
        session, ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(fed + 1)), out));
  }
  return out;
}

}  // namespace hone
