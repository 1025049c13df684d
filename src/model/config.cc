#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <initializer_list>

#include "base/nearest_name.h"
#include "model/config_experts.h"
#include "model/config_faults.h"
#include "model/family.h"

namespace hone {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 31;  // sizes multiply to less than 2^63

class RangeCheck {
 public:
  explicit RangeCheck(ConfigFaults& faults) : faults_(faults) {}

  void size(std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most = kLargest) {
    if (value >= least && value <= most) return;
    faults_.add(name, "a size is out of range", fmt::format("{} to {}", least, most),
                fmt::format("{}", value));
  }
  // least < value < most
  void real(std::string_view name, double value, double least, double most) {
    if (value > least && value < most) return;
    faults_.add(name, "a number is out of range", fmt::format("between {} and {}", least, most),
                fmt::format("{}", value));
  }
  void truth(bool holds, std::string_view name, std::string_view message, std::string expected,
             std::string actual) {
    if (!holds) faults_.add(name, std::string(message), std::move(expected), std::move(actual));
  }

 private:
  ConfigFaults& faults_;
};

void check_factors(RangeCheck& check, const RopeConfig& rope, const std::vector<double>& factors,
                   std::string_view name) {
  if (factors.empty()) return;
  check.truth(static_cast<std::int64_t>(factors.size()) == rope.dim / 2, name,
              "a list of rope divisors has one for each pair", fmt::format("{} numbers", rope.dim / 2),
              fmt::format("{} numbers", factors.size()));
  for (const double factor : factors) check.real(name, factor, 0, 1e9);
}

void check_rope(RangeCheck& check, const ModelConfig& config, const RopeConfig& rope) {
  check.truth(rope.dim >= 2 && rope.dim % 2 == 0 && rope.dim <= config.head_dim, "the rotary dims of a head",
              "rotary dims are pairs inside a head",
              fmt::format("an even number from 2 to {}", config.head_dim), fmt::format("{}", rope.dim));
  check.real("the rotary base", rope.theta, 1, 1e30);
  check.real("the rope's attention factor", rope.attention_factor, 0, 1e6);
  if (rope.kind == RopeKind::Plain) return;
  check.real("the rope's factor", rope.factor, 0, 1e9);
  if (rope.kind == RopeKind::Linear) return;
  check.real("the rope's original context", rope.original_context, 0, static_cast<double>(kLargest));
  if (rope.kind == RopeKind::Dynamic) {
    check.truth(rope.dim > 2, "the rotary dims of a head", "a dynamic base needs two pairs", "4 or more",
                fmt::format("{}", rope.dim));
    check.truth(rope.factor >= 1, "the rope's factor", "a dynamic base grows", "1 or more",
                fmt::format("{}", rope.factor));
  } else if (rope.kind == RopeKind::Llama3) {
    check.real("low_freq_factor", rope.low_frequency_factor, 0, 1e9);
    check.real("high_freq_factor", rope.high_frequency_factor, rope.low_frequency_factor, 1e9);
  } else if (rope.kind == RopeKind::Yarn) {
    check.real("beta_fast", rope.beta_fast, 0, 1e9);
    check.real("beta_slow", rope.beta_slow, 0, 1e9);
  } else {
    check_factors(check, rope, rope.short_factors, "short_factor");
    check_factors(check, rope, rope.long_factors, "long_factor");
  }
}

void check_sizes(RangeCheck& check, const Checkpoint& checkpoint, const ModelConfig& config) {
  check.size("the embedding's length", config.dim, 1);
  check.size("the number of layers", config.layers, 1, 100'000);
  check.size("the number of layers that predict further tokens", config.prediction_layers, 0);
  check.truth(config.layers <= static_cast<std::int64_t>(checkpoint.tensors.size()), "the number of layers",
              "every layer has tensors of its own",
              fmt::format("at most {}, the number of tensors", checkpoint.tensors.size()),
              fmt::format("{}", config.layers));
  check.size("the number of heads", config.heads, 1, 1'000'000);
  check.size("the number of kv heads", config.kv_heads, 1, std::max<std::int64_t>(config.heads, 1));
  check.truth(config.kv_heads < 1 || config.heads % config.kv_heads == 0, "the number of kv heads",
              "query heads are shared out evenly over kv heads", fmt::format("a divisor of {}", config.heads),
              fmt::format("{}", config.kv_heads));
  check.size("the length of a head", config.head_dim, 1);
  check.size("the length of a value head", config.v_head_dim, 1);
  check.size("the feed-forward's length", config.ffn, 1);
  check.size("the vocabulary's size", config.vocabulary, 1);
  check.size("the context's length", config.context_length, 1);
  check.size("the sliding window", config.sliding_window, 0);
}

}  // namespace

void ConfigFaults::add(std::string_view key, std::string message, std::string expected, std::string actual) {
  errors_.push_back(Error{ErrorCode::BadModel, Fault::File, fmt::format("{}, key {}", source_, key),
                          std::move(message), std::move(expected), std::move(actual),
                          "hone inspect shows what the file says"});
}

Status ConfigFaults::check(const ModelConfig& config) const {
  if (errors_.empty()) return {};
  if (errors_.size() == 1 && config.refused.empty()) return errors_.front();
  std::vector<std::string> all;
  all.reserve(errors_.size() + config.refused.size());
  for (const std::string& key : config.refused) all.push_back(fmt::format("{} is not supported", key));
  const std::string prefix = source_ + ", ";
  for (const Error& error : errors_) {
    const std::string_view where = error.where;
    all.push_back(fmt::format("{}: {} (expected {}, not {})",
                              where.starts_with(prefix) ? where.substr(prefix.size()) : where, error.message,
                              error.expected, error.actual));
  }
  return Error{ErrorCode::BadModel,
               Fault::File,
               source_,
               fmt::format("{} keys cannot be used", all.size()),
               "every key of the family, with a value in its range",
               fmt::format("{}", fmt::join(all, "; ")),
               "hone inspect shows what the file says"};
}

const KeyRow* find_row(std::span<const KeyRow> rows, std::string_view key) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const KeyRow& r) { return r.key == key; });
  return row == rows.end() ? nullptr : &*row;
}

void sort_key(std::span<const KeyRow> rows, std::string_view key, std::string_view shown,
              std::string_view value, ModelConfig& config) {
  const KeyRow* row = find_row(rows, key);
  if (row == nullptr) {
    std::vector<std::string_view> known;
    known.reserve(rows.size());
    for (const KeyRow& r : rows) known.push_back(r.key);
    const std::string_view near = nearest_name(key, known);
    config.warnings.push_back(
        near.empty() ? fmt::format("key {} is not known and was not used", shown)
                     : fmt::format("key {} is not known and was not used (nearest: {})", shown, near));
    return;
  }
  const bool used =
      row->use == KeyUse::Used && (row->families.empty() || in_list(row->families, config.family));
  if (row->use == KeyUse::NoEffect || used) return;
  std::string_view neutral = row->neutral;
  while (!neutral.empty()) {
    const std::size_t end = std::min(neutral.find('|'), neutral.size());
    if (neutral.substr(0, end) == value) return;
    neutral.remove_prefix(std::min(end + 1, neutral.size()));
  }
  config.refused.push_back(fmt::format("key {} = {}", shown, value));
}

void complete(const Checkpoint& checkpoint, ModelConfig& config, ConfigFaults& faults) {
  if (config.v_head_dim == 0) config.v_head_dim = config.head_dim;
  if (config.rope.dim == 0) config.rope.dim = config.head_dim;
  if (config.local_rope && config.local_rope->dim == 0) config.local_rope->dim = config.rope.dim;
  if (config.local_rope) config.local_rope->interleaved = config.rope.interleaved;
  if (config.attention_scale == 0)
    config.attention_scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  config.any_context = config.rope.kind == RopeKind::Dynamic;

  RangeCheck check(faults);
  check_sizes(check, checkpoint, config);
  check_experts(config, faults);
  if (!faults.empty()) return;
  check_rope(check, config, config.rope);
  if (config.local_rope) check_rope(check, config, *config.local_rope);
  check.real("the norm's eps", config.norm_eps, 0, 1);
  check.real("the scale of the scores", config.attention_scale, 0, 1e6);
  check.truth(config.attention_softcap >= 0 && config.attention_softcap < 1e9, "the soft cap of the scores",
              "a cap is positive", "0 (none) to 1e9", fmt::format("{}", config.attention_softcap));
  check.truth(config.final_softcap >= 0 && config.final_softcap < 1e9, "the soft cap of the logits",
              "a cap is positive", "0 (none) to 1e9", fmt::format("{}", config.final_softcap));
}

void warn_of_prediction_layers(const Checkpoint& checkpoint, std::string_view key, ModelConfig& config) {
  const auto count = std::ranges::count_if(checkpoint.tensors, [&](const TensorEntry& tensor) {
    return is_of_prediction_layer(config, tensor.name);
  });
  if (count == 0) return;
  config.warnings.push_back(
      fmt::format("{} tensors of the layers behind layer {} were not used: they predict further tokens ({})",
                  count, config.layers - 1, key));
}

Result<ModelConfig> read_config(const Checkpoint& checkpoint) {
  if (checkpoint.config != nullptr) return read_hugging_face_config(checkpoint);
  return read_gguf_config(checkpoint);
}

}  // namespace hone
