// Mistral (Jiang et al. 2023, arXiv 2310.06825): Llama's layer with a sliding window: a token sees the last W
// keys, itself included. (GGUF files of it say `llama`.)
//
//   x = x + softmax(q k^T / sqrt(E), keys at positions p with t - W < p <= t) v Wo^T
#include "model/families.h"

namespace hone {
namespace {

void describe(ModelConfig& config) {
  config.tied = false;
  config.sliding_window = 4096;  // where config.json does not say
}

void derive(ModelConfig& config) {
  if (config.sliding_window > 0 && config.sliding_layers.empty()) {
    config.sliding_layers.assign(static_cast<std::size_t>(config.layers), true);
  }
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

constexpr Family kFamily{.name = "mistral",
                         .gguf = "",
                         .hugging_face = "mistral",
                         .names = {},
                         .describe = describe,
                         .derive = derive,
                         .build = build};

}  // namespace

const Family& mistral_family() {
  return kFamily;
}

}  // namespace hone
