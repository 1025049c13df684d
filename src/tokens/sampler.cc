#include "tokens/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "base/philox.h"

namespace hone {

namespace {

// Bit of Sampler::counts_: the id stands in prompt or answer. The others count occurrences in the answer.
constexpr std::uint32_t kSeen = 0x80000000U;
// Adjusted logits stay within: far beyond f32, and finite whatever the penalties.
constexpr double kLargestLogit = 1e100;

Error out_of_range(const SamplerFault& fault) {
  return Error{ErrorCode::Usage,
               Fault::User,
               std::string(fault.option),
               fmt::format("{} is out of its range", fault.option),
               std::string(fault.expected),
               fmt::format("{}", fault.actual),
               {}};
}

bool has_penalty(const SamplerOptions& options) {
  return options.repeat_penalty != 1.0 || options.presence_penalty != 0.0 || options.frequency_penalty != 0.0;
}

Error not_a_logit(std::size_t token, double value) {
  return internal_error("sampler", fmt::format("the logit of token {} is {}", token, value));
}

}  // namespace

std::optional<SamplerFault> find_fault(const SamplerOptions& options) {
  // Written so that a NaN fails.
  const auto share = [](double p) { return p > 0.0 && p <= 1.0; };
  struct Rule {
    bool holds;
    SamplerFault fault;
  };
  const std::array rules{
      Rule{options.temperature >= 0.0 && std::isfinite(options.temperature),
           {"temperature", "a number >= 0", options.temperature}},
      Rule{options.top_k >= 0, {"top-k", "an integer >= 0", static_cast<double>(options.top_k)}},
      Rule{share(options.top_p), {"top-p", "a number > 0 and <= 1", options.top_p}},
      Rule{options.min_p >= 0.0 && options.min_p <= 1.0, {"min-p", "a number from 0 to 1", options.min_p}},
      Rule{share(options.typical_p), {"typical-p", "a number > 0 and <= 1", options.typical_p}},
      Rule{options.repeat_penalty > 0.0 && std::isfinite(options.repeat_penalty),
           {"repeat-penalty", "a number > 0", options.repeat_penalty}},
      Rule{std::isfinite(options.presence_penalty),
           {"presence-penalty", "a finite number", options.presence_penalty}},
      Rule{std::isfinite(options.frequency_penalty),
           {"frequency-penalty", "a finite number", options.frequency_penalty}},
  };
  const auto broken = std::ranges::find_if(rules, [](const Rule& rule) { return !rule.holds; });
  if (broken == rules.end()) return std::nullopt;
  return broken->fault;
}

Result<Sampler> Sampler::create(const SamplerOptions& options, std::int32_t vocab_size) {
  if (const auto fault = find_fault(options)) return out_of_range(*fault);
  if (vocab_size <= 0) {
    return out_of_range({"vocabulary size", "an integer > 0", static_cast<double>(vocab_size)});
  }
  Sampler out;
  out.options_ = options;
  out.vocab_size_ = static_cast<std::size_t>(vocab_size);
  out.candidates_.resize(out.vocab_size_);
  if (has_penalty(options)) out.counts_.resize(out.vocab_size_);
  return out;
}

std::int64_t Sampler::heap_bytes() const {
  return static_cast<std::int64_t>(candidates_.capacity() * sizeof(Candidate) +
                                   counts_.capacity() * sizeof(std::uint32_t));
}

std::int64_t Sampler::predicted_heap_bytes(std::int64_t vocab_size) {
  return vocab_size * static_cast<std::int64_t>(sizeof(Candidate) + sizeof(std::uint32_t));
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> prompt,
                                     std::span<const std::int32_t> answer, std::uint64_t position) {
  if (options_.temperature == 0.0 && counts_.empty()) return likeliest(logits);
  HONE_TRY(fill(logits));
  if (!counts_.empty()) penalise(prompt, answer);
  if (options_.temperature == 0.0) return greedy();

  double largest = -std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.weight);
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((candidate.weight - largest) / options_.temperature);
  }
  keep_top_k();
  keep_top_p();
  keep_min_p();
  keep_typical();
  return draw(position);
}

Status Sampler::check_size(std::span<const float> logits) const {
  if (logits.size() == vocab_size_) return {};
  return internal_error("sampler",
                        fmt::format("{} logits for a vocabulary of {}", logits.size(), vocab_size_));
}

// One comparison a logit: neither a NaN nor +infinity is at most a finite best.
Result<std::int32_t> Sampler::likeliest(std::span<const float> logits) const {
  HONE_TRY(check_size(logits));
  float best = -std::numeric_limits<float>::infinity();
  std::size_t id = logits.size();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] <= best) continue;
    if (!std::isfinite(logits[i])) return not_a_logit(i, static_cast<double>(logits[i]));
    best = logits[i];
    id = i;
  }
  if (id == logits.size()) return internal_error("sampler", "every logit is -infinity");
  return static_cast<std::int32_t>(id);
}

Status Sampler::fill(std::span<const float> logits) {
  HONE_TRY(check_size(logits));
  candidates_.resize(logits.size());
  bool any = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const auto logit = static_cast<double>(logits[i]);
    if (std::isnan(logit) || logit == std::numeric_limits<double>::infinity()) {
      return not_a_logit(i, logit);
    }
    any = any || !std::isinf(logit);
    candidates_[i] = {logit, static_cast<std::int32_t>(i)};
  }
  if (!any) return internal_error("sampler", "every logit is -infinity");
  return {};
}

void Sampler::penalise(std::span<const std::int32_t> prompt, std::span<const std::int32_t> answer) {
  std::ranges::fill(counts_, 0U);
  const auto count = [&](std::int32_t id, std::uint32_t times) {
    if (id < 0 || static_cast<std::size_t>(id) >= counts_.size()) return;
    std::uint32_t& entry = counts_[static_cast<std::size_t>(id)];
    entry = (entry + times) | kSeen;
  };
  for (const std::int32_t id : prompt) count(id, 0);
  for (const std::int32_t id : answer) count(id, 1);
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    double& logit = candidates_[i].weight;
    if (std::isinf(logit)) continue;
    logit = logit > 0.0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
    const std::uint32_t times = counts_[i] & ~kSeen;
    if (times > 0) logit -= options_.presence_penalty + options_.frequency_penalty * times;
    logit = std::clamp(logit, -kLargestLogit, kLargestLogit);
  }
}

std::int32_t Sampler::greedy() const {
  const Candidate* best = candidates_.data();
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > best->weight) best = &candidate;
  }
  return best->id;
}

double Sampler::total_weight() const {
  double total = 0.0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  return total;
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
  sort_by_id();
}

// Sums and draws run over ids in order, so they do not depend on how a library selects and sorts.
void Sampler::sort_by_id() {
  std::ranges::sort(candidates_, {}, &Candidate::id);
}

// Keeps the first candidates of an order until they sum to `mass` of the whole. A heap gives them in order
// without sorting the tail; they gather at the end of the array.
template <class Later>
void Sampler::keep_first(const Later& later, double mass) {
  const double enough = mass * total_weight();
  std::make_heap(candidates_.begin(), candidates_.end(), later);
  auto rest = candidates_.end();
  double sum = 0.0;
  do {
    std::pop_heap(candidates_.begin(), rest, later);
    --rest;
    sum += rest->weight;
  } while (rest != candidates_.begin() && sum < enough);
  candidates_.erase(candidates_.begin(), rest);
  sort_by_id();
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0) return;
  keep_first([](const Candidate& a,
                const Candidate& b) { return a.weight != b.weight ? a.weight < b.weight : a.id > b.id; },
             options_.top_p);
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0) return;
  double largest = 0.0;
  for (const Candidate& candidate : candidates_) largest = std::max(largest, candidate.weight);
  std::erase_if(candidates_,
                [&](const Candidate& candidate) { return candidate.weight < options_.min_p * largest; });
}

// With weights w of sum W, -ln p = ln W - ln w, and the entropy is ln W - (sum of w ln w) / W. So the
// distance of a token is |ln w - ln t| for ln t = (sum of w ln w) / W, and grows with max(w / t, t / w): no
// logarithm in the order.
void Sampler::keep_typical() {
  if (options_.typical_p >= 1.0) return;
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > 0.0) sum += candidate.weight * std::log(candidate.weight);
  }
  const double t = std::exp(sum / total_weight());
  const auto distance = [t](double weight) { return weight > t ? weight / t : t / weight; };
  keep_first(
      [&](const Candidate& a, const Candidate& b) {
        const double of_a = distance(a.weight);
        const double of_b = distance(b.weight);
        return of_a != of_b ? of_a > of_b : a.id > b.id;
      },
      options_.typical_p);
}

std::int32_t Sampler::draw(std::uint64_t position) const {
  const double target = philox_uniform(options_.seed, position) * total_weight();
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
