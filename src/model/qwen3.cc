// Qwen3 (arXiv 2505.09388): no biases, but a norm over each head of q and k before they are turned; E is free
// of D/H.
//
//   q, k = rope(rms_norm(h Wq^T)), rope(rms_norm(h Wk^T)), each head of E by itself
#include "model/families.h"

namespace hone {
namespace {

void describe(ModelConfig& config) {
  if (config.style == FileStyle::HuggingFace) config.tied = false;
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.head_normed_attention(model.norm(x, "attention_norm")));
    x = model.add(x, model.feed_forward(model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "qwen3",
                         .gguf = "qwen3",
                         .hugging_face = "qwen3",
                         .names = {},
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& qwen3_family() {
  return kFamily;
}

}  // namespace hone
