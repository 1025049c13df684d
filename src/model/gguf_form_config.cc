// The keys of a GGUF file for a config read from config.json: the inverse of model/config_gguf.cc.
#include <cmath>
#include <fmt/format.h>

#include "model/family.h"
#include "model/gguf_form.h"

namespace hone {
namespace {

bool near(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

double default_scale(const ModelConfig& config) {
  return 1 / std::sqrt(static_cast<double>(config.head_dim));
}

bool is_latent(const ModelConfig& config) {
  return config.latent.kv_rank != 0;
}

// n: every n-th layer sees everything. 0: the layers follow no such rule.
std::int64_t window_period(const ModelConfig& config) {
  for (std::int64_t period = 1; period <= config.layers + 1; ++period) {
    bool fits = true;
    for (std::int64_t i = 0; i < config.layers && fits; ++i)
      fits = config.slides(i) == ((i + 1) % period != 0);
    if (fits) return period;
  }
  return 0;
}

// DeepSeek's files say by how much yarn's ramp strengthens the scores: scale = (1 + m ln f)^2 / sqrt(E).
double yarn_log_multiplier(const ModelConfig& config) {
  const double each = std::sqrt(config.attention_scale / default_scale(config));
  return (each - 1) / std::log(config.rope.factor);
}

class Keys {
 public:
  Keys(std::string_view architecture, GgufWriter& writer) : architecture_(architecture), writer_(writer) {}
  void integer(std::string_view key, std::int64_t value) {
    writer_.add_u32(name(key), static_cast<std::uint32_t>(value));
  }
  void real(std::string_view key, double value) { writer_.add_f32(name(key), static_cast<float>(value)); }
  void text(std::string_view key, std::string_view value) { writer_.add_string(name(key), value); }
  void truth(std::string_view key, bool value) { writer_.add_bool(name(key), value); }

 private:
  std::string name(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }
  std::string_view architecture_;
  GgufWriter& writer_;
};

void add_rope(const ModelConfig& config, Keys& keys) {
  const RopeConfig& rope = config.rope;
  keys.integer("rope.dimension_count", rope.dim);
  keys.real("rope.freq_base", rope.theta);
  if (config.local_rope) keys.real("rope.freq_base_swa", config.local_rope->theta);
  switch (rope.kind) {
    case RopeKind::Linear:
      keys.text("rope.scaling.type", "linear");
      keys.real("rope.scaling.factor", rope.factor);
      return;
    case RopeKind::Yarn:
      keys.text("rope.scaling.type", "yarn");
      keys.real("rope.scaling.factor", rope.factor);
      keys.integer("rope.scaling.original_context_length", static_cast<std::int64_t>(rope.original_context));
      keys.real("rope.scaling.yarn_beta_fast", rope.beta_fast);
      keys.real("rope.scaling.yarn_beta_slow", rope.beta_slow);
      if (is_latent(config)) {
        keys.real("rope.scaling.yarn_log_multiplier", yarn_log_multiplier(config));
      } else {
        keys.real("rope.scaling.attn_factor",
                  rope.attention_factor / (rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1));
      }
      return;
    case RopeKind::LongRope:
      keys.integer("rope.scaling.original_context_length", static_cast<std::int64_t>(rope.original_context));
      keys.real("rope.scaling.attn_factor", rope.attention_factor);
      return;
    case RopeKind::Plain:
    case RopeKind::Dynamic:
    case RopeKind::Llama3:
      return;
  }
}

void add_experts(const ModelConfig& config, Keys& keys) {
  const ExpertConfig& experts = config.experts;
  if (experts.count == 0) return;
  keys.integer("expert_count", experts.count);
  keys.integer("expert_used_count", experts.per_token);
  keys.integer("expert_feed_forward_length", experts.ffn);
  if (config.family == "qwen2_moe") keys.integer("expert_shared_feed_forward_length", experts.shared_ffn);
  if (!is_latent(config)) return;
  keys.integer("expert_shared_count", experts.shared_count);
  keys.integer("leading_dense_block_count", experts.first_layer);
  keys.truth("expert_weights_norm", experts.normalise);
  keys.real("expert_weights_scale", experts.scale);
  keys.integer("expert_gating_func", experts.sigmoid ? 2 : 1);
  if (experts.groups > 1) {
    keys.integer("expert_group_count", experts.groups);
    keys.integer("expert_group_used_count", experts.groups_per_token);
  }
}

}  // namespace

std::vector<std::string> not_in_gguf(const ModelConfig& config, const ModelConfig& target) {
  std::vector<std::string> out;
  const auto need = [&](bool holds, std::string text) {
    if (!holds) out.push_back(std::move(text));
  };
  need(config.rope.kind != RopeKind::Dynamic, "a rope of type dynamic");
  need(config.rope.truncate, "yarn with truncate false");
  need(!config.local_rope || config.local_rope->kind == RopeKind::Plain,
       "a scaled rope of the sliding layers");
  need(config.activation == target.activation, "this activation");
  need(config.rope.interleaved == target.rope.interleaved || config.rope.dim == config.head_dim,
       "heads of which a part turns, in pairs");
  need(config.family != "glm4" || config.architecture == "glm4", "model_type glm");
  need(config.sliding_window == 0 || config.sliding_layers.empty() || window_period(config) > 0,
       "these layer_types, which follow no period");
  const bool slides = config.sliding_window > 0 && !config.sliding_layers.empty();
  need(!slides || in_list("llama mistral phi3 gemma2 gemma3", config.family), "a sliding window");
  const ExpertConfig& experts = config.experts;
  if (experts.count != 0 && !is_latent(config)) {
    need(experts.normalise == target.experts.normalise,
         fmt::format("norm_topk_prob = {}", experts.normalise));
    need(experts.first_layer == 0 && experts.layer_step == 1 && experts.dense_layers.empty(),
         "dense layers between those with experts");
  }
  if (is_latent(config)) {
    need(config.rope.attention_factor == 1, "mscale other than mscale_all_dim");
    need(config.rope.kind == RopeKind::Yarn || near(config.attention_scale, default_scale(config)),
         "this scale of the scores");
    need(experts.layer_step == 1 && experts.dense_layers.empty(), "dense layers between those with experts");
  }
  return out;
}

void add_gguf_config(const ModelConfig& config, const GgufForm& form, GgufWriter& writer) {
  writer.add_string("general.architecture", form.architecture);
  Keys keys(form.architecture, writer);
  keys.integer("vocab_size", config.vocabulary);
  keys.integer("context_length", config.context_length);
  keys.integer("embedding_length", config.dim);
  keys.integer("block_count", config.layers);
  keys.integer("feed_forward_length", config.ffn);
  keys.integer("attention.head_count", config.heads);
  keys.integer("attention.head_count_kv", config.kv_heads);
  keys.integer("attention.key_length", config.head_dim);
  keys.integer("attention.value_length", config.v_head_dim);
  keys.real("attention.layer_norm_rms_epsilon", config.norm_eps);
  if (is_latent(config)) {
    if (config.latent.q_rank != 0) keys.integer("attention.q_lora_rank", config.latent.q_rank);
    keys.integer("attention.kv_lora_rank", config.latent.kv_rank);
  } else if (!near(config.attention_scale, default_scale(config))) {
    keys.real("attention.scale", config.attention_scale);
  }
  if (config.sliding_window > 0 && !config.sliding_layers.empty()) {
    keys.integer("attention.sliding_window", config.sliding_window);
    const std::int64_t period = window_period(config);
    if (config.local_rope || period <= config.layers)
      keys.integer("attention.sliding_window_pattern", period);
  }
  if (config.attention_softcap > 0) keys.real("attn_logit_softcapping", config.attention_softcap);
  if (config.final_softcap > 0) keys.real("final_logit_softcapping", config.final_softcap);
  add_rope(config, keys);
  add_experts(config, keys);
}

}  // namespace hone
