// GLM-4-0414 (model_type glm4) and GLM-4-9B in Hugging Face's form (model_type glm): q, k, v apart with
// biases, gate and up in one matrix; the first half of each head turns, by interleaved pairs. glm4 has a
// second norm behind each block, inside the residual:
//
//   x = x + rms_norm(attention(rms_norm(x)))
//   x = x + rms_norm(feed_forward(rms_norm(x)))
#include <array>

#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kNames{
    PartName{"after_attention_norm", "blk.{}.post_attention_norm",
             "model.layers.{}.post_self_attn_layernorm"},
    PartName{"after_feed_forward_norm", "blk.{}.post_ffw_norm", "model.layers.{}.post_mlp_layernorm"},
};

void describe(ModelConfig& config) {
  config.rope.interleaved = true;
  if (config.style == FileStyle::Gguf) return;
  config.tied = false;
  config.qkv_bias = Bias::Required;  // where config.json does not say
}

void build(ModelBuilder& model) {
  const bool sandwich = model.config().architecture == "glm4";
  const auto after = [&](ValueId x, std::string_view part) { return sandwich ? model.norm(x, part) : x; };
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    const ValueId attended = model.attention(model.norm(x, "attention_norm"));
    x = model.add(x, after(attended, "after_attention_norm"));
    const ValueId fed = model.fused_feed_forward(model.norm(x, "feed_forward_norm"));
    x = model.add(x, after(fed, "after_feed_forward_norm"));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "glm4",
                         .gguf = "glm4",
                         .hugging_face = "glm4 glm",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& glm4_family() {
  return kFamily;
}

}  // namespace hone
