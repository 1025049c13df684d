// Logits -> the next id.
//
// Order of the steps: repeat penalty, presence and frequency penalty, temperature, top-k, top-p, min-p,
// typical, one draw: that of the logits processors of transformers. Each later step sees the candidates and
// the renormalised probabilities that the earlier ones left. Every cut leaves at least one candidate; of
// equally good ones it keeps the lower id.
// Temperature 0 is greedy: the largest logit after the penalties, the lowest id on a tie; nothing is drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hone {

struct SamplerOptions {
  double temperature = 0.0;  // >= 0; 0 is greedy
  std::int32_t top_k = 0;    // keeps the k most likely; 0 is off
  double top_p = 1.0;  // (0, 1]: keeps the smallest set of most likely tokens that sums to >= p (Holtzman et
                       // al. 2020); 1 is off
  double min_p = 0.0;  // [0, 1]: drops tokens less likely than p times the most likely (Nguyen et al. 2024);
                       // 0 is off
  double typical_p = 1.0;  // (0, 1]: keeps the smallest set that sums to >= p of the tokens whose -ln p is
                           // nearest to the entropy (Meister et al. 2022); 1 is off
  double repeat_penalty = 1.0;     // > 0: logits of ids in prompt and answer are divided (positive) or
                                   // multiplied (others) by it (Keskar et al. 2019); 1 is off
  double presence_penalty = 0.0;   // finite: subtracted from the logits of ids in the answer; 0 is off
  double frequency_penalty = 0.0;  // finite: subtracted once for each time the id stands in the answer; 0 is
                                   // off
  std::uint64_t seed = 0;
};

// The range that an option is outside of.
struct SamplerFault {
  std::string_view option;    // "top-p": the flag without its dashes
  std::string_view expected;  // "a number > 0 and <= 1"
  double actual;
};
std::optional<SamplerFault> find_fault(const SamplerOptions& options);

class Sampler {
 public:
  // Error Usage names the option that is out of its range. `vocab_size` fixes the scratch: heap_bytes().
  static Result<Sampler> create(const SamplerOptions& options, std::int32_t vocab_size);

  // The id for `position`, the index of the new token in its sequence. The draw depends on (seed, position)
  // alone (base/philox.h), so on nothing else that runs. `logits` [V]; `prompt`, `answer`: the ids so far
  // that the penalties look at, ids out of range are ignored. Errors: Internal when a logit is NaN or
  // +infinity, when all are -infinity, or when the length is not vocab_size.
  Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> prompt,
                              std::span<const std::int32_t> answer, std::uint64_t position);

  const SamplerOptions& options() const { return options_; }
  std::int64_t heap_bytes() const;
  // The most that heap_bytes() can be for a vocabulary of this size: with a penalty.
  static std::int64_t predicted_heap_bytes(std::int64_t vocab_size);

 private:
  struct Candidate {
    double weight;  // the adjusted logit, later the unnormalised probability
    std::int32_t id;
  };

  Sampler() = default;
  Status check_size(std::span<const float> logits) const;
  // What greedy() gives of the logits as they are.
  Result<std::int32_t> likeliest(std::span<const float> logits) const;
  Status fill(std::span<const float> logits);
  void penalise(std::span<const std::int32_t> prompt, std::span<const std::int32_t> answer);
  std::int32_t greedy() const;
  void sort_by_id();
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  void keep_typical();
  double total_weight() const;
  template <class Later>
  void keep_first(const Later& later, double mass);
  std::int32_t draw(std::uint64_t position) const;

  SamplerOptions options_;
  std::size_t vocab_size_ = 0;
  std::vector<Candidate> candidates_;  // capacity V; what the steps so far have left
  std::vector<std::uint32_t> counts_;  // [V], only with a penalty: occurrences in the answer, kSeen
};

}  // namespace hone
