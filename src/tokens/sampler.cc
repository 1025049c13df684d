#include "tokens/sampler.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "base/philox.h"

namespace hone {

namespace {

Error out_of_range(std::string_view option, std::string_view expected, double actual) {
  return Error{ErrorCode::Usage,
               Fault::User,
               std::string(option),
               fmt::format("{} is out of its range", option),
               std::string(expected),
               fmt::format("{}", actual),
               {}};
}

Status check(const SamplerOptions& options) {
  // Written so that a NaN fails.
  if (!(options.temperature >= 0.0) || std::isinf(options.temperature)) {
    return out_of_range("temperature", "a number >= 0", options.temperature);
  }
  if (options.top_k < 0) return out_of_range("top-k", "an integer >= 0", options.top_k);
  if (!(options.top_p > 0.0 && options.top_p <= 1.0)) {
    return out_of_range("top-p", "a number > 0 and <= 1", options.top_p);
  }
  if (!(options.min_p >= 0.0 && options.min_p <= 1.0)) {
    return out_of_range("min-p", "a number from 0 to 1", options.min_p);
  }
  if (!(options.repeat_penalty > 0.0) || std::isinf(options.repeat_penalty)) {
    return out_of_range("repeat-penalty", "a number > 0", options.repeat_penalty);
  }
  return {};
}

}  // namespace

Result<Sampler> Sampler::create(const SamplerOptions& options, std::int32_t vocab_size) {
  HONE_TRY(check(options));
  if (vocab_size <= 0) return out_of_range("vocabulary size", "an integer > 0", vocab_size);
  Sampler out;
  out.options_ = options;
  out.vocab_size_ = static_cast<std::size_t>(vocab_size);
  out.candidates_.resize(out.vocab_size_);
  if (options.repeat_penalty != 1.0) out.seen_.resize(out.vocab_size_);
  return out;
}

std::int64_t Sampler::heap_bytes() const {
  return static_cast<std::int64_t>(candidates_.capacity() * sizeof(Candidate) + seen_.capacity());
}

std::int64_t Sampler::predicted_heap_bytes(std::int64_t vocab_size) {
  return vocab_size * static_cast<std::int64_t>(sizeof(Candidate) + sizeof(std::uint8_t));
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history,
                                     std::uint64_t position) {
  if (logits.size() != vocab_size_) {
    return internal_error("sampler",
                          fmt::format("{} logits for a vocabulary of {}", logits.size(), vocab_size_));
  }
  std::fill(seen_.begin(), seen_.end(), std::uint8_t{0});
  if (!seen_.empty()) {
    for (const std::int32_t id : history) {
      if (id >= 0 && static_cast<std::size_t>(id) < seen_.size()) seen_[static_cast<std::size_t>(id)] = 1;
    }
  }
  candidates_.resize(logits.size());
  bool any = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    double logit = static_cast<double>(logits[i]);
    if (std::isnan(logit) || logit == std::numeric_limits<double>::infinity()) {
      return internal_error("sampler", fmt::format("the logit of token {} is {}", i, logit));
    }
    any = any || !std::isinf(logit);
    if (!seen_.empty() && seen_[i] != 0) {
      logit = logit > 0.0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    }
    candidates_[i] = {logit, static_cast<std::int32_t>(i)};
  }
  if (!any) return internal_error("sampler", "every logit is -infinity");
  if (options_.temperature == 0.0) return greedy();

  double largest = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.weight);
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.weight - largest) / options_.temperature);
  }
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw(position);
}

Result<std::int32_t> Sampler::greedy() const {
  const Candidate* best = candidates_.data();
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > best->weight) best = &candidate;
  }
  return best->id;
}

void Sampler::keep_top_k() {
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
  };
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k),
                   candidates_.end(), likelier);
  candidates_.resize(k);
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0) return;
  const auto less_likely = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.id > b.id;
  };
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  // A heap gives the likely ones in order without sorting the tail; they gather at the end of the array.
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  auto rest = candidates_.end();
  double sum = 0.0;
  while (rest != candidates_.begin() && sum < options_.top_p * total) {
    std::pop_heap(candidates_.begin(), rest, less_likely);
    --rest;
    sum += rest->weight;
  }
  candidates_.erase(candidates_.begin(), rest);
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0) return;
  double largest = 0.0;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates_,
                [&](const Candidate& candidate) { return candidate.weight < options_.min_p * largest; });
}

std::int32_t Sampler::draw(std::uint64_t position) const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const double target = philox_uniform(options_.seed, position) * total;
  double sum = 0.0;
  std::int32_t last = candidates_.front().id;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight <= 0.0) continue;
    last = candidate.id;
    sum += candidate.weight;
    if (target < sum) return candidate.id;
  }
  return last;
}

}  // namespace hone
