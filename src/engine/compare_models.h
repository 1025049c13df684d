// How far one model's predictions are from another's on a text.
#pragma once

#include <cstdint>
#include <span>

#include "engine/session.h"

namespace hone {

// One window of the text, read from an empty cache.
struct ComparedSample {
  std::int64_t first = 0;   // its first token's number
  std::int64_t tokens = 0;  // predicted
  double kl_mean = 0;
};

// Kullback-Leibler divergences sum p ln(p/q) in nats, of the source's distribution p from the other's q, one
// for each token but the last of its window; all in f64.
struct Comparison {
  std::int64_t tokens = 0;
  double kl_mean = 0;
  double kl_largest = 0;
  double kl_worst_percent = 0;  // mean over the worst 1% of tokens, at least one
  double same_top_rate = 0;     // tokens for which both have one and the same likeliest next token
  double source_nll_mean = 0;   // of the text's tokens
  double other_nll_mean = 0;
  ComparedSample worst;  // the sample with the largest kl_mean
};

// Both sessions must have been opened with all_logits, one vocabulary, and a context of at least `window`
// tokens. Errors: (BadInput) fewer than two tokens, or ids outside the vocabulary; (BadModel) vocabularies
// that differ.
Result<Comparison> compare_models(Session& source, Session& other, std::span<const std::int32_t> ids,
                                  std::int64_t window);

// sum p ln(p/q) of two softmaxes over logits, in f64.
double divergence(std::span<const float> source, std::span<const float> other);

}  // namespace hone
