// The keys of routed experts and of multi-head latent attention, in config.json and in GGUF.
#include "model/config_experts.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

constexpr std::int64_t kMostExperts = 65'536;
constexpr std::int64_t kMostGroups = 1024;

bool is_v3(const ModelConfig& config) {
  return config.architecture == "deepseek_v3";
}

// 0.1 m ln(factor) + 1, by which a yarn rope corrects the scores, once on each side.
double yarn_scale(double factor, double m) {
  return factor <= 1 ? 1 : 0.1 * m * std::log(factor) + 1;
}

void read_deepseek_experts(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config) {
  ExpertConfig& experts = config.experts;
  const bool v3 = is_v3(config);
  experts.count = reader.need_integer("n_routed_experts");
  experts.first_layer = reader.integer("first_k_dense_replace").value_or(v3 ? 3 : 0);
  experts.shared_count = near_range(reader.integer("n_shared_experts").value_or(v3 ? 1 : 2));
  experts.shared_ffn = experts.shared_count * experts.ffn;
  experts.scale = reader.real("routed_scaling_factor").value_or(v3 ? 2.5 : 1);
  experts.sigmoid = v3;
  experts.normalise = v3 && reader.truth("norm_topk_prob").value_or(true);
  const std::string method = reader.text("topk_method").value_or(v3 ? "noaux_tc" : "greedy");
  if (method != (v3 ? "noaux_tc" : "greedy") && (v3 || method != "group_limited_greedy")) {
    config.refused.push_back(fmt::format("key topk_method = \"{}\"", method));
  }
  const std::string score = v3 ? "sigmoid" : "softmax";
  if (const std::string given = reader.text("scoring_func").value_or(score); given != score) {
    config.refused.push_back(fmt::format("key scoring_func = \"{}\"", given));
  }
  // transformers' DeepSeek-V2 does not read it, and its authors' code normalises instead of scaling.
  if (!v3 && reader.truth("norm_topk_prob").value_or(false)) {
    config.refused.emplace_back("key norm_topk_prob = true");
  }
  if (method != "greedy") {
    const auto groups = [&](const char* key, std::int64_t otherwise) {
      return json.contains(key) ? reader.integer(key).value_or(1) : otherwise;
    };
    experts.groups = groups("n_group", v3 ? 8 : 1);
    experts.groups_per_token = groups("topk_group", v3 ? 4 : 1);
  }
}

void read_qwen_experts(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                       ConfigFaults& faults) {
  ExpertConfig& experts = config.experts;
  const std::optional<std::int64_t> old_name = reader.integer("num_experts");
  experts.count = old_name ? *old_name : reader.need_integer("num_local_experts");
  experts.normalise = reader.truth("norm_topk_prob").value_or(false);
  experts.layer_step = reader.integer("decoder_sparse_step").value_or(1);
  if (config.family == "qwen2_moe") {
    experts.shared_count = 1;
    experts.shared_ffn = reader.need_integer("shared_expert_intermediate_size");
    config.qkv_bias = reader.truth("qkv_bias").value_or(true) ? Bias::Required : Bias::None;
  }
  const auto dense = json.find("mlp_only_layers");
  if (dense == json.end() || dense->is_null()) return;
  const bool integers =
      dense->is_array() && std::all_of(dense->begin(), dense->end(),
                                       [](const nlohmann::json& i) { return i.is_number_integer(); });
  if (!integers) {
    faults.add("mlp_only_layers", "the value has another type", "a list of layers", json_text(*dense));
    return;
  }
  for (const nlohmann::json& layer : *dense) experts.dense_layers.push_back(layer.get<std::int64_t>());
}

void read_latent_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                      ConfigFaults& faults) {
  LatentConfig& latent = config.latent;
  latent.kv_rank = reader.need_integer("kv_lora_rank");
  latent.q_rank = json.contains("q_lora_rank") ? reader.integer("q_lora_rank").value_or(0) : 1536;
  latent.nope_dim = near_range(reader.need_integer("qk_nope_head_dim"));
  latent.rope_dim = near_range(reader.need_integer("qk_rope_head_dim"));
  config.v_head_dim = reader.need_integer("v_head_dim");
  if (config.v_head_dim == 0) config.v_head_dim = -1;  // 0 would stand for E
  config.kv_heads = config.heads;
  config.head_dim = latent.nope_dim + latent.rope_dim;
  config.rope.dim = latent.rope_dim;
  config.rope.interleaved = !is_v3(config) || reader.truth("rope_interleave").value_or(true);
  if (config.rope.kind == RopeKind::Plain) return;
  for (const std::string_view place : {"rope_scaling", "rope_parameters"}) {
    const auto found = json.find(place);
    if (found == json.end() || !found->is_object()) continue;
    const double all =
        JsonReader(*found, fmt::format("{}.", place), faults).real("mscale_all_dim").value_or(0);
    const double each = all == 0 ? 1 : yarn_scale(config.rope.factor, all);
    config.attention_scale = each * each / std::sqrt(static_cast<double>(config.head_dim));
  }
}

}  // namespace

void read_expert_keys(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                      ConfigFaults& faults) {
  const bool deepseek = config.family == "deepseek";
  if (!deepseek && config.family != "qwen2_moe" && config.family != "qwen3_moe") return;
  config.experts.per_token = reader.need_integer("num_experts_per_tok");
  config.experts.ffn = near_range(reader.need_integer("moe_intermediate_size"));
  if (deepseek) {
    read_deepseek_experts(json, reader, config);
    read_latent_keys(json, reader, config, faults);
  } else {
    read_qwen_experts(json, reader, config, faults);
  }
}

void check_experts(const ModelConfig& config, ConfigFaults& faults) {
  const auto need = [&](bool holds, std::string_view name, std::string expected, std::int64_t actual) {
    if (holds) return;
    faults.add(name, "a size is out of range", std::move(expected), fmt::format("{}", actual));
  };
  const LatentConfig& latent = config.latent;
  constexpr std::int64_t kLargestRank = std::int64_t{1} << 31;
  if (config.family == "deepseek") {
    need(latent.kv_rank > 0 && latent.kv_rank <= kLargestRank, "the rank of keys and values", "1 or more",
         latent.kv_rank);
    need(latent.q_rank >= 0 && latent.q_rank <= kLargestRank, "the rank of queries", "0 (none) or more",
         latent.q_rank);
    need(latent.nope_dim >= 1 && latent.nope_dim <= kLargestRank, "the part of a head that does not turn",
         "1 or more", latent.nope_dim);
    need(latent.rope_dim >= 2 && latent.rope_dim % 2 == 0 && latent.rope_dim <= kLargestRank,
         "the part of a head that turns", "an even number, 2 or more", latent.rope_dim);
  }
  const ExpertConfig& experts = config.experts;
  if (experts.count == 0) return;
  need(experts.count >= 1 && experts.count <= kMostExperts, "the number of experts",
       fmt::format("1 to {}", kMostExperts), experts.count);
  need(experts.per_token >= 1 && experts.per_token <= experts.count, "the experts of a token",
       fmt::format("1 to {}", experts.count), experts.per_token);
  need(experts.ffn >= 1 && experts.ffn <= kLargestRank, "an expert's length", "1 or more", experts.ffn);
  need(experts.shared_ffn >= 0 && experts.shared_ffn <= kLargestRank, "the shared experts' length",
       "0 (none) or more", experts.shared_ffn);
  need(experts.first_layer >= 0, "the first layer with experts", "0 or more", experts.first_layer);
  need(experts.layer_step >= 1, "the step between layers with experts", "1 or more", experts.layer_step);
  if (!(std::abs(experts.scale) < 1e9)) {
    faults.add("the scale of the experts' weights", "a number is out of range", "below 1e9",
               fmt::format("{}", experts.scale));
  }
  const bool divides =
      experts.groups >= 1 && experts.groups <= kMostGroups && experts.count % experts.groups == 0;
  need(divides, "the groups of experts",
       fmt::format("a divisor of {}, at most {}", experts.count, kMostGroups), experts.groups);
  need(experts.groups_per_token >= 1 && experts.groups_per_token <= experts.groups, "the groups of a token",
       fmt::format("1 to {}", experts.groups), experts.groups_per_token);
  if (!faults.empty() || experts.groups_per_token == experts.groups) return;
  const std::int64_t size = experts.count / experts.groups;
  need(experts.per_token <= experts.groups_per_token * size, "the experts of a token",
       fmt::format("at most the {} of its groups", experts.groups_per_token * size), experts.per_token);
  need(!experts.sigmoid || size >= 2, "the groups of experts", "two experts or more in each", experts.groups);
}

}  // namespace hone
