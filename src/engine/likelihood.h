// How likely a model holds a text.
#pragma once

#include <cstdint>
#include <span>

#include "engine/session.h"

namespace hone {

struct Likelihood {
  std::int64_t tokens = 0;  // predicted: one fewer than the text has
  double nll_sum = 0;       // sum of -log p(ids[t+1] | ids[..t]), natural logarithm, in f64
};

// The session must have been opened with all_logits. Errors: fewer than two tokens; more than the context.
Result<Likelihood> likelihood(Session& session, std::span<const std::int32_t> ids);

// -log softmax(logits)[id], in f64.
double negative_log_likelihood(std::span<const float> logits, std::int32_t id);

}  // namespace hone
