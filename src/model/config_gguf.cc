// The metadata of a GGUF file: keys of the GGUF specification behind the prefix `ARCH.`.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

#include "model/config_experts.h"
#include "model/config_faults.h"
#include "model/family.h"

namespace hone {
namespace {

using enum KeyUse;

// Every key after `ARCH.` that hone knows.
constexpr std::array kGgufKeys{
    KeyRow{"embedding_length"},
    KeyRow{"block_count"},
    KeyRow{"feed_forward_length"},
    KeyRow{"context_length"},
    KeyRow{"attention.head_count"},
    KeyRow{"attention.head_count_kv"},
    KeyRow{"attention.key_length"},
    KeyRow{"attention.value_length"},
    KeyRow{"attention.layer_norm_rms_epsilon"},
    KeyRow{"attention.scale"},
    KeyRow{"attention.sliding_window", Used, "llama phi3 gemma2 gemma3", "0"},
    KeyRow{"attention.sliding_window_pattern", Used, "gemma2 gemma3"},
    KeyRow{"attn_logit_softcapping", Used, "gemma2 gemma3", "0"},
    KeyRow{"final_logit_softcapping", Used, "gemma2 gemma3", "0"},
    KeyRow{"vocab_size"},
    KeyRow{"rope.dimension_count"},
    KeyRow{"rope.freq_base"},
    KeyRow{"rope.freq_base_swa", Used, "gemma3"},
    KeyRow{"rope.scale_linear"},
    KeyRow{"rope.scaling.type"},
    KeyRow{"rope.scaling.factor"},
    KeyRow{"rope.scaling.attn_factor"},
    KeyRow{"rope.scaling.original_context_length"},
    KeyRow{"rope.scaling.yarn_attn_factor"},
    KeyRow{"rope.scaling.yarn_beta_fast"},
    KeyRow{"rope.scaling.yarn_beta_slow"},

    KeyRow{"attention.causal", Refused, "", "true"},
    KeyRow{"attention.clamp_kqv", Refused, "", "0"},
    KeyRow{"attention.kv_lora_rank", Used, "deepseek", "0"},
    KeyRow{"attention.q_lora_rank", Used, "deepseek", "0"},
    KeyRow{"attention.layer_norm_epsilon", Refused},
    KeyRow{"attention.max_alibi_bias", Refused, "", "0"},
    KeyRow{"attention.output_scale", Refused, "", "0|1"},
    KeyRow{"attention.temperature_length", Refused, "", "0"},
    KeyRow{"attention.temperature_scale", Refused, "", "0"},
    KeyRow{"attention.shared_kv_layers", Refused, "", "0"},
    KeyRow{"attention.key_length_mla", Used, "deepseek", "0"},
    KeyRow{"attention.value_length_mla", Used, "deepseek", "0"},
    KeyRow{"attn_output_scale", Refused, "", "1"},
    KeyRow{"embedding_scale", Refused, "", "0|1"},
    KeyRow{"residual_scale", Refused, "", "0|1"},
    KeyRow{"logit_scale", Refused, "", "0|1"},
    KeyRow{"expert_count", Used, "qwen2_moe qwen3_moe deepseek", "0"},
    KeyRow{"expert_used_count", Used, "qwen2_moe qwen3_moe deepseek", "0"},
    KeyRow{"expert_shared_count", Used, "deepseek", "0"},
    KeyRow{"expert_feed_forward_length", Used, "qwen2_moe qwen3_moe deepseek", "0"},
    KeyRow{"expert_shared_feed_forward_length", Used, "qwen2_moe", "0"},
    KeyRow{"expert_weights_norm", Used, "deepseek", "false"},
    KeyRow{"expert_weights_scale", Used, "deepseek", "0|1"},
    KeyRow{"expert_gating_func", Used, "deepseek", "0"},
    KeyRow{"expert_group_count", Used, "deepseek", "0"},
    KeyRow{"expert_group_used_count", Used, "deepseek", "0"},
    KeyRow{"leading_dense_block_count", Used, "deepseek", "0"},
    KeyRow{"interleave_moe_layer_step", Refused, "", "0|1"},
    KeyRow{"nextn_predict_layers"},
    KeyRow{"swin_norm", Refused, "", "false"},
    KeyRow{"use_parallel_residual", Refused, "", "false"},
    KeyRow{"rope.dimension_sections", Refused},
    KeyRow{"rope.scaling.yarn_ext_factor", Refused, "", "1|-1"},
    KeyRow{"rope.scaling.yarn_log_multiplier", Used, "deepseek", "0"},

    KeyRow{"rope.scaling.finetuned", NoEffect},
    KeyRow{"tensor_data_layout", NoEffect},
    KeyRow{"mm.tokens_per_image", NoEffect},
};

// Keys without the prefix that say nothing about the maths.
constexpr std::array<std::string_view, 7> kOtherPrefixes{"general.", "tokenizer.", "split.",   "quantize.",
                                                         "imatrix.", "adapter.",   "training."};

std::string value_text(const MetadataValue& value) {
  if (const auto integer = value.as_integer()) return fmt::format("{}", *integer);
  if (const auto real = value.as_real()) return fmt::format("{}", *real);
  if (const auto truth = value.as_bool()) return *truth ? "true" : "false";
  if (const auto text = value.as_string()) return std::string(text->substr(0, 60));
  return value.type_text();
}

void sort_keys(const Metadata& metadata, ModelConfig& config) {
  const std::string prefix = config.architecture + ".";
  for (const MetadataEntry& entry : metadata.entries()) {
    const std::string_view key = entry.key;
    if (key.starts_with(prefix)) {
      sort_key(kGgufKeys, key.substr(prefix.size()), key, value_text(entry.value), config);
      continue;
    }
    const bool other = std::any_of(kOtherPrefixes.begin(), kOtherPrefixes.end(),
                                   [&](std::string_view p) { return key.starts_with(p); });
    if (!other) config.warnings.push_back(fmt::format("key {} is not known and was not used", key));
  }
}

class Reader {
 public:
  Reader(const Metadata& metadata, const std::string& architecture, ConfigFaults& faults)
      : metadata_(metadata), prefix_(architecture + "."), faults_(faults) {}

  std::int64_t need_integer(std::string_view key) {
    return faults_.take(metadata_.required_integer(prefix_ + std::string(key)), std::int64_t{1});
  }
  double need_real(std::string_view key) {
    return faults_.take(metadata_.required_real(prefix_ + std::string(key)), 0.5);
  }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) {
    return faults_.take(metadata_.optional_integer(prefix_ + std::string(key)), {}).value_or(otherwise);
  }
  double real(std::string_view key, double otherwise) {
    return faults_.take(metadata_.optional_real(prefix_ + std::string(key)), {}).value_or(otherwise);
  }
  bool truth(std::string_view key, bool otherwise) {
    return faults_.take(metadata_.optional_bool(prefix_ + std::string(key)), {}).value_or(otherwise);
  }
  std::string text(std::string_view key) {
    return std::string(
        faults_.take(metadata_.optional_string(prefix_ + std::string(key)), {}).value_or(std::string_view()));
  }
  bool has(std::string_view key) const { return metadata_.find(prefix_ + std::string(key)) != nullptr; }
  const MetadataValue* find(std::string_view key) const { return metadata_.find(prefix_ + std::string(key)); }

 private:
  const Metadata& metadata_;
  std::string prefix_;
  ConfigFaults& faults_;
};

void read_rope(const Checkpoint& checkpoint, Reader& reader, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.theta = reader.real("rope.freq_base", rope.theta);
  rope.dim = reader.integer("rope.dimension_count", config.head_dim);
  rope.original_context =
      static_cast<double>(reader.integer("rope.scaling.original_context_length", config.context_length));
  rope.factor = reader.real("rope.scaling.factor", reader.real("rope.scale_linear", 1));
  const std::string type = reader.text("rope.scaling.type");
  // Phi-3's files name no type: the tensors say it.
  const bool divided = checkpoint.find_tensor("rope_factors_long.weight") != nullptr;
  if (type == "longrope" || (divided && (type.empty() || type == "none"))) {
    rope.kind = RopeKind::LongRope;
    rope.factor = 1;
    rope.attention_factor = reader.real("rope.scaling.attn_factor", 1);
  } else if (type == "linear" || (type.empty() && rope.factor != 1)) {
    rope.kind = RopeKind::Linear;
  } else if (type == "yarn") {
    rope.kind = RopeKind::Yarn;
    rope.beta_fast = reader.real("rope.scaling.yarn_beta_fast", 32);
    rope.beta_slow = reader.real("rope.scaling.yarn_beta_slow", 1);
    const double by_length = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
    rope.attention_factor = by_length * reader.real("rope.scaling.attn_factor", 1) *
                            reader.real("rope.scaling.yarn_attn_factor", 1);
  } else if (!type.empty() && type != "none") {
    config.refused.push_back(fmt::format("key {}.rope.scaling.type = {}", config.architecture, type));
  }
  if (config.local_rope)
    config.local_rope->theta = reader.real("rope.freq_base_swa", config.local_rope->theta);
}

// `sliding_window_pattern`: n, every n-th layer sees everything; or one truth value a layer.
void read_pattern(const Reader& reader, ModelConfig& config, ConfigFaults& faults) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const MetadataValue* value = reader.find(kKey);
  if (value == nullptr) return;
  const std::optional<std::int64_t> period = value->as_integer();
  const std::optional<MetadataArray> each = value->as_array();
  if (period && *period >= 1) {
    for (std::int64_t i = 0; i < config.layers && i < 100'000; ++i) {
      config.sliding_layers.push_back((i + 1) % *period != 0);
    }
  } else if (each && each->element_type() == MetadataType::Bool &&
             static_cast<std::int64_t>(each->size()) == config.layers) {
    for (std::uint64_t i = 0; i < each->size(); ++i) {
      config.sliding_layers.push_back(each->bool_at(i).value_or(false));
    }
  } else {
    faults.add(kKey, "the pattern is a period or one truth value a layer",
               fmt::format("1 or more, or {} bools", config.layers), value_text(*value));
  }
}

// Multi-head latent attention. In files with the keys `_mla`, key_length and value_length are those of the
// one head in the cache: the latent and what turns, and the latent.
void read_latent(Reader& reader, ModelConfig& config, ConfigFaults& faults) {
  LatentConfig& latent = config.latent;
  latent.kv_rank = near_range(reader.need_integer("attention.kv_lora_rank"));
  latent.q_rank = reader.integer("attention.q_lora_rank", 0);
  latent.rope_dim = near_range(config.rope.dim);
  latent.absorbed = reader.integer("attention.key_length_mla", 0) != 0;
  if (latent.absorbed) {
    const auto need = [&](std::string_view key, std::int64_t actual, std::int64_t expected) {
      if (actual == expected) return;
      faults.add(key, "the one head of keys and values in the cache has another size",
                 fmt::format("{}", expected), fmt::format("{}", actual));
    };
    need("attention.key_length", config.head_dim, latent.kv_rank + latent.rope_dim);
    need("attention.value_length", config.v_head_dim, latent.kv_rank);
    need("attention.head_count_kv", config.kv_heads, 1);
    config.head_dim = reader.need_integer("attention.key_length_mla");
    config.v_head_dim = reader.need_integer("attention.value_length_mla");
    if (config.v_head_dim == 0) config.v_head_dim = -1;  // 0 would stand for E
  } else {
    config.kv_heads = config.heads;
  }
  latent.nope_dim = near_range(config.head_dim) - latent.rope_dim;
  if (config.rope.kind != RopeKind::Yarn) return;
  // The files say 0.1 m; what yarn does to cos and sin stands on the scores instead, once for each side.
  const double each = 1 + reader.real("rope.scaling.yarn_log_multiplier", 0) * std::log(config.rope.factor);
  config.rope.attention_factor = 1;
  config.attention_scale = each * each / std::sqrt(static_cast<double>(config.head_dim));
}

// Routed experts and, for DeepSeek's files, multi-head latent attention.
void read_experts(Reader& reader, ModelConfig& config, ConfigFaults& faults) {
  ExpertConfig& experts = config.experts;
  const bool deepseek = config.family == "deepseek";
  if (!deepseek && config.family != "qwen2_moe" && config.family != "qwen3_moe") return;
  experts.count = reader.need_integer("expert_count");
  experts.per_token = reader.need_integer("expert_used_count");
  experts.ffn = near_range(reader.need_integer("expert_feed_forward_length"));
  if (config.family == "qwen2_moe") {
    experts.shared_count = 1;
    experts.shared_ffn = reader.integer("expert_shared_feed_forward_length", config.ffn);
  }
  if (!deepseek) return;
  experts.shared_count = near_range(reader.integer("expert_shared_count", 0));
  experts.shared_ffn = experts.shared_count * experts.ffn;
  experts.first_layer = reader.integer("leading_dense_block_count", 0);
  experts.normalise = reader.truth("expert_weights_norm", false);
  const double scale = reader.real("expert_weights_scale", 0);
  experts.scale = scale == 0 ? 1 : scale;
  const std::int64_t gating = reader.integer("expert_gating_func", 1);
  experts.sigmoid = gating == 2;
  if (gating != 0 && gating != 1 && gating != 2) {
    config.refused.push_back(fmt::format("key {}.expert_gating_func = {}", config.architecture, gating));
  }
  experts.groups = std::max<std::int64_t>(1, reader.integer("expert_group_count", 1));
  experts.groups_per_token = std::max<std::int64_t>(1, reader.integer("expert_group_used_count", 1));
  read_latent(reader, config, faults);
}

}  // namespace

Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint) {
  const Metadata& metadata = checkpoint.metadata;
  ModelConfig config;
  config.style = FileStyle::Gguf;
  config.architecture = std::string(HONE_TRY(metadata.required_string("general.architecture")));
  const Family* family = HONE_TRY(find_family(config.architecture, config.style,
                                              fmt::format("{}, key general.architecture", checkpoint.path)));
  config.family = family->name;
  if (family->describe != nullptr) family->describe(config);
  sort_keys(metadata, config);

  ConfigFaults faults(checkpoint.path);
  Reader reader(metadata, config.architecture, faults);
  config.dim = reader.need_integer("embedding_length");
  config.prediction_layers = near_range(reader.integer("nextn_predict_layers", 0));
  config.layers = near_range(reader.need_integer("block_count")) - config.prediction_layers;
  config.heads = reader.need_integer("attention.head_count");
  config.ffn = reader.need_integer("feed_forward_length");
  config.context_length = reader.need_integer("context_length");
  config.norm_eps = reader.need_real("attention.layer_norm_rms_epsilon");
  config.kv_heads = reader.integer("attention.head_count_kv", config.heads);
  config.head_dim =
      reader.integer("attention.key_length", config.dim / std::max<std::int64_t>(config.heads, 1));
  config.v_head_dim = reader.integer("attention.value_length", config.head_dim);
  config.attention_scale = reader.real("attention.scale", 0);
  config.attention_softcap = reader.real("attn_logit_softcapping", 0);
  config.final_softcap = reader.real("final_logit_softcapping", 0);
  config.sliding_window = reader.integer("attention.sliding_window", 0);
  read_rope(checkpoint, reader, config);
  read_pattern(reader, config, faults);
  read_experts(reader, config, faults);

  const TensorEntry* embedding = checkpoint.find_tensor("token_embd.weight");
  if (embedding != nullptr && embedding->shape.size() == 2) {
    config.vocabulary = embedding->shape[0];
  } else {
    faults.add("token_embd.weight", "the token embedding is missing or no matrix", "[V,D]",
               embedding == nullptr ? "no such tensor" : fmt::format("{} axes", embedding->shape.size()));
    config.vocabulary = 1;
  }
  if (faults.empty()) complete(checkpoint, config, faults);
  HONE_TRY(faults.check(config));
  if (family->derive != nullptr) family->derive(config);
  warn_of_prediction_layers(checkpoint, "nextn_predict_layers", config);
  return config;
}

}  // namespace hone
