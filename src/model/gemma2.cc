// Gemma 2 (arXiv 2408.00118): embeddings times sqrt(D); norms before and behind each block, which multiply by
// 1 + w (GGUF files hold 1 + w); gelu; soft caps on the scores and on the logits; every other layer, from the
// first on, sees a sliding window.
//
//   x = x + rms_norm(attention(rms_norm(x)))
//   h = rms_norm(x);  x = x + rms_norm((gelu(h Wg^T) * (h Wu^T)) Wd^T)
//   scores = c tanh(q k^T * scale / c);  logits = c' tanh(rms_norm(x) W^T / c')
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
  if (config.style == FileStyle::Gguf) return;
  config.norm_offset = 1;
  config.tied = true;
  // Where config.json does not say.
  config.sliding_window = 4096;
  config.attention_scale = 1.0 / 16;
  config.attention_softcap = 50;
  config.final_softcap = 30;
}

void derive(ModelConfig& config) {
  config.embedding_scale = std::sqrt(static_cast<double>(config.dim));
  // GGUF has no key for the scale; of the published sizes only 27B, of 46 layers, scales by D/H instead of E.
  if (config.style == FileStyle::Gguf && config.layers == 46) {
    config.attention_scale =
        1 / std::sqrt(static_cast<double>(config.dim) / static_cast<double>(config.heads));
  }
  if (config.sliding_window > 0 && config.sliding_layers.empty()) {
    for (std::int64_t i = 0; i < config.layers; ++i) config.sliding_layers.push_back(i % 2 == 0);
  }
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    const ValueId attended = model.attention(model.norm(x, "attention_norm"));
    x = model.add(x, model.norm(attended, "after_attention_norm"));
    const ValueId fed = model.feed_forward(model.norm(x, "feed_forward_norm"));
    x = model.add(x, model.norm(fed, "after_feed_forward_norm"));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "gemma2",
                         .gguf = "gemma2",
                         .hugging_face = "gemma2",
                         .names = kNames,
                         .describe = describe,
                         .derive = derive,
                         .build = build};

}  // namespace

const Family& gemma2_family() {
  return kFamily;
}

}  // namespace hone
