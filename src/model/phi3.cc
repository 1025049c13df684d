// Phi-3 (arXiv 2404.14219) and Phi-4-mini: Llama's layer with q, k, v in one matrix and gate and up in
// another; part of each head may turn; the long context by longrope, whose table depends on the sequence's
// length.
//
//   q | k | v = h Wqkv^T;  gate | up = h Wgu^T
//   x = x + (silu(gate) * up) Wd^T
#include "model/families.h"

namespace hone {
namespace {

void describe(ModelConfig& config) {
  if (config.style == FileStyle::HuggingFace) config.tied = false;
}

void derive(ModelConfig& config) {
  if (config.sliding_window > 0) config.sliding_layers.assign(static_cast<std::size_t>(config.layers), true);
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.fused_attention(model.norm(x, "attention_norm")));
    x = model.add(x, model.fused_feed_forward(model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "phi3",
                         .gguf = "phi3",
                         .hugging_face = "phi3",
                         .names = {},
                         .describe = describe,
                         .derive = derive,
                         .build = build};

}  // namespace

const Family& phi3_family() {
  return kFamily;
}

}  // namespace hone
