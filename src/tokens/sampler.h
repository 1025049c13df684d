// Logits -> the next id.
//
// Order of the steps: repeat penalty, temperature, top-k, top-p, min-p, one draw. Each later step sees the
// candidates and the renormalised probabilities that the earlier ones left. Ties in a cut keep the lower id.
// Temperature 0 is greedy: the largest logit after the repeat penalty, the lowest id on a tie; nothing is
// drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace hone {

struct SamplerOptions {
  double temperature = 0.0;  // >= 0; 0 is greedy
  std::int32_t top_k = 0;    // keeps the k most likely; 0 is off
  double top_p = 1.0;  // (0, 1]: keeps the smallest set of most likely tokens that sums to >= p; 1 is off
  double min_p = 0.0;  // [0, 1]: drops tokens less likely than p times the most likely; 0 is off
  double repeat_penalty = 1.0;  // > 0: logits of ids in `history` are divided (positive) or multiplied
                                // (others) by it (Keskar et al. 2019); 1 is off
  std::uint64_t seed = 0;
};

class Sampler {
 public:
  // Error Usage names the option that is out of its range. `vocab_size` fixes the scratch: heap_bytes().
  static Result<Sampler> create(const SamplerOptions& options, std::int32_t vocab_size);

  // The id for `position`, the index of the new token in its sequence. The draw depends on (seed, position)
  // alone (base/philox.h), so on nothing else that runs. `logits` [V]; `history`: the ids that the repeat
  // penalty looks at, ids out of range are ignored. Errors: Internal when a logit is NaN or +infinity, when
  // all are -infinity, or when the length is not vocab_size.
  Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> history,
                              std::uint64_t position);

  const SamplerOptions& options() const { return options_; }
  std::int64_t heap_bytes() const;
  // The most that heap_bytes() can be for a vocabulary of this size: with a repeat penalty.
  static std::int64_t predicted_heap_bytes(std::int64_t vocab_size);

 private:
  struct Candidate {
    double weight;  // the adjusted logit, later the unnormalised probability
    std::int32_t id;
  };

  Sampler() = default;
  Result<std::int32_t> greedy() const;
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  std::int32_t draw(std::uint64_t position) const;

  SamplerOptions options_;
  std::size_t vocab_size_ = 0;
  std::vector<Candidate> candidates_;  // capacity V; what the steps so far have left
  std::vector<std::uint8_t> seen_;     // [V], only with a repeat penalty
};

}  // namespace hone
