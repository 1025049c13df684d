// Llama 2 and 3 (Touvron et al. 2023; arXiv 2407.21783) and what shares their shape: SmolLM2,
// DeepSeek-R1-Distill-Llama, Yi, .. Pre-norm layers, rotary attention over grouped kv heads, SwiGLU.
//
//   h = rms_norm(x);  q, k, v = h Wq^T, h Wk^T, h Wv^T, q and k turned by their positions
//   x = x + softmax(q k^T / sqrt(E), keys at or before the token) v Wo^T
//   h = rms_norm(x);  x = x + (silu(h Wg^T) * (h Wu^T)) Wd^T
//   logits = rms_norm(x) W^T
//
// GGUF files hold the rows of q and k permuted, so that the two of a rotary pair stand side by side.
#include "model/families.h"

namespace hone {
namespace {

void describe(ModelConfig& config) {
  config.rope.interleaved = config.style == FileStyle::Gguf;
  if (config.style == FileStyle::HuggingFace) config.tied = false;
}

void derive(ModelConfig& config) {
  if (config.sliding_window > 0) config.sliding_layers.assign(static_cast<std::size_t>(config.layers), true);
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.attention(model.norm(x, "attention_norm")));
    x = model.add(x, model.feed_forward(model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "llama",
                         .gguf = "llama",
                         .hugging_face = "llama",
                         .names = {},
                         .describe = describe,
                         .derive = derive,
                         .build = build};

}  // namespace

const Family& llama_family() {
  return kFamily;
}

}  // namespace hone
