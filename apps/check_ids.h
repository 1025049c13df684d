// What can be said of token ids before the model runs.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "engine/session.h"

namespace hone {

// Error (BadInput): an id outside the vocabulary, with its place.
Status check_vocabulary(const Session& session, std::span<const std::int32_t> ids);
// Error (BadInput): a sequence of `length` tokens is longer than the context.
Status check_length(const Session& session, std::int64_t length);

}  // namespace hone
