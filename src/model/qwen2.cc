// Qwen2 and Qwen2.5 (arXiv 2407.10671), DeepSeek-R1-Distill-Qwen: Llama's layer with biases on q, k and v.
//
//   q, k, v = h Wq^T + bq, h Wk^T + bk, h Wv^T + bv
//
// With use_sliding_window, the layers from max_window_layers on see a window only.
#include "model/families.h"

namespace hone {
namespace {

void describe(ModelConfig& config) {
  if (config.style == FileStyle::Gguf) return;
  config.tied = false;
  config.qkv_bias = Bias::Required;
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

constexpr Family kFamily{.name = "qwen2",
                         .gguf = "qwen2",
                         .hugging_face = "qwen2",
                         .names = {},
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& qwen2_family() {
  return kFamily;
}

}  // namespace hone
