// Gemma 3, text (arXiv 2503.19786): Gemma 2's layer with norms on the heads of q and k in place of the soft
// caps; five layers with a sliding window and a rope of their own, then one that sees everything.
//
//   q, k = rope(rms_norm(h Wq^T)), rope(rms_norm(h Wk^T)), each head of E by itself
//   x = x + rms_norm(attention(rms_norm(x)))
//   h = rms_norm(x);  x = x + rms_norm((gelu(h Wg^T) * (h Wu^T)) Wd^T)
#include <array>
#include <cmath>

#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kNames{
    PartName{"after_attention_norm", "blk.{}.post_attention_norm",
             "model.layers.{}.post_attention_layernorm"},
    PartName{"feed_forward_norm", "blk.{}.ffn_norm", "model.layers.{}.pre_feedforward_layernorm"},
    PartName{"after_feed_forward_norm", "blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};

void describe(ModelConfig& config) {
  config.activation = Activation::GeluTanh;
  config.rope.theta = 1'000'000;
  config.local_rope.emplace().theta = 10'000;
  if (config.style == FileStyle::Gguf) return;
  config.norm_offset = 1;
  config.tied = true;
  // Where config.json does not say.
  config.sliding_window = 4096;
  config.attention_scale = 1.0 / 16;
}

void derive(ModelConfig& config) {
  config.embedding_scale = std::sqrt(static_cast<double>(config.dim));
  // GGUF has no key for the scale; of the published sizes only 27B, of 62 layers, scales by D/H instead of E.
  if (config.style == FileStyle::Gguf && config.layers == 62) {
    config.attention_scale =
        1 / std::sqrt(static_cast<double>(config.dim) / static_cast<double>(config.heads));
  }
  if (config.sliding_window > 0 && config.sliding_layers.empty()) {
    for (std::int64_t i = 0; i < config.layers; ++i) config.sliding_layers.push_back((i + 1) % 6 != 0);
  }
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    const ValueId attended = model.head_normed_attention(model.norm(x, "attention_norm"));
    x = model.add(x, model.norm(attended, "after_attention_norm"));
    const ValueId fed = model.feed_forward(model.norm(x, "feed_forward_norm"));
    x = model.add(x, model.norm(fed, "after_feed_forward_norm"));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "gemma3",
                         .gguf = "gemma3",
                         .hugging_face = "gemma3_text gemma3",
                         .names = kNames,
                         .describe = describe,
                         .derive = derive,
                         .build = build};

}  // namespace

const Family& gemma3_family() {
  return kFamily;
}

}  // namespace hone
