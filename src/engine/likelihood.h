// How likely a model holds a text.
#pragma once

#include <cstdint>
#include <span>

#include "engine/session.h"

namespace hone {

struct Likelihood {
  std::int64_t tokens = 0;  // predicted: one fewer than the text has
  std::int64_t windows = 0;
  double nll_sum = 0;  // sum of -log p(ids[t+1] | ids[..t]), natural logarithm, in f64
};

// A text of more than C + 1 tokens, C the context, is cut into windows: each is fed C tokens and begins with
// the last one that the window before predicted, so every token but the first is predicted once, from what
// stands before it in its window. The session must have been opened with all_logits. Errors: fewer than two
// tokens; one outside the vocabulary.
Result<Likelihood> likelihood(Session& session, std::span<const std::int32_t> ids);

// -log softmax(logits)[id], in f64.
double negative_log_likelihood(std::span<const float> logits, std::int32_t id);

}  // namespace hone
