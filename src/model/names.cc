#include "model/names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::array kCommon{
    PartName{"embed_tokens", "token_embd", "model.embed_tokens"},
    PartName{"final_norm", "output_norm", "model.norm"},
    PartName{"lm_head", "output", "lm_head"},
    PartName{"rope_freqs", "rope_freqs", ""},
    PartName{"rope_factors_long", "rope_factors_long", ""},
    PartName{"rope_factors_short", "rope_factors_short", ""},
    PartName{"attention_norm", "blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
    PartName{"q_proj", "blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
    PartName{"k_proj", "blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
    PartName{"v_proj", "blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
    PartName{"qkv_proj", "blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
    PartName{"q_norm", "blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm"},
    PartName{"k_norm", "blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm"},
    PartName{"o_proj", "blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
    PartName{"feed_forward_norm", "blk.{}.ffn_norm", "model.layers.{}.post_attention_layernorm"},
    PartName{"gate_proj", "blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
    PartName{"up_proj", "blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"},
    PartName{"gate_up_proj", "blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
    PartName{"down_proj", "blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
};

std::string_view pattern_of(std::span<const PartName> names, FileStyle style, std::string_view part) {
  const auto row =
      std::find_if(names.begin(), names.end(), [&](const PartName& name) { return name.part == part; });
  if (row == names.end()) return {};
  return style == FileStyle::Gguf ? row->gguf : row->hugging_face;
}

}  // namespace

std::span<const PartName> common_names() {
  return kCommon;
}

std::string tensor_stem(std::span<const PartName> family_names, FileStyle style, std::string_view part,
                        std::int64_t layer) {
  std::string_view pattern = pattern_of(family_names, style, part);
  if (pattern.empty()) pattern = pattern_of(kCommon, style, part);
  const std::size_t at = pattern.find("{}");
  if (at == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, at), layer, pattern.substr(at + 2));
}

std::string tensor_stem(std::span<const PartName> family_names, const ModelConfig& config,
                        std::string_view part, std::int64_t layer) {
  std::string stem = tensor_stem(family_names, config.style, part, layer);
  if (config.style == FileStyle::Gguf || stem.empty()) return stem;
  constexpr std::string_view kBody = "model.";
  if (stem.starts_with(kBody)) return config.body_prefix + stem.substr(kBody.size());
  return config.head_prefix + stem;
}

bool is_of_other_model(const ModelConfig& config, std::string_view tensor) {
  return std::ranges::any_of(config.other_models,
                             [&](const std::string& begin) { return tensor.starts_with(begin); });
}

bool is_of_prediction_layer(const ModelConfig& config, std::string_view tensor) {
  const std::string_view before = config.style == FileStyle::Gguf ? "blk." : "model.layers.";
  if (config.prediction_layers == 0 || !tensor.starts_with(before)) return false;
  std::int64_t layer = 0;
  const char* begin = tensor.data() + before.size();
  const auto [end, failed] = std::from_chars(begin, tensor.data() + tensor.size(), layer);
  return failed == std::errc() && end != begin && layer >= config.layers &&
         layer < config.layers + config.prediction_layers;
}

}  // namespace hone
