// OLMo 2 (arXiv 2501.00656): no norm before a block, but one behind it, inside the residual; norms over all
// heads of q and of k together before they are cut and turned.
//
//   q, k = rope(rms_norm(x Wq^T)), rope(rms_norm(x Wk^T)), over all H*E and K*E at once
//   x = x + rms_norm(attention(x));  x = x + rms_norm(feed_forward(x))
#include <array>

#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kNames{
    PartName{"after_attention_norm", "blk.{}.post_attention_norm",
             "model.layers.{}.post_attention_layernorm"},
    PartName{"after_feed_forward_norm", "blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"},
};

void describe(ModelConfig& config) {
  if (config.style == FileStyle::HuggingFace) config.tied = false;
}

ValueId attention(ModelBuilder& model, ValueId x) {
  const GraphBuilder::Scope scope(model.graph(), "attn");
  ModelBuilder::Projections flat = model.project(x);
  flat.q = model.norm(flat.q, "q_norm");
  flat.k = model.norm(flat.k, "k_norm");
  return model.project_output(model.attend(model.turn(model.cut_heads(flat))));
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.norm(attention(model, x), "after_attention_norm"));
    x = model.add(x, model.norm(model.feed_forward(x), "after_feed_forward_norm"));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "olmo2",
                         .gguf = "olmo2",
                         .hugging_face = "olmo2",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& olmo2_family() {
  return kFamily;
}

}  // namespace hone
