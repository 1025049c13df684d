// Qwen3-MoE (arXiv 2505.09388): Qwen3's attention, with norms over each head of q and k; the feed-forward of
// each layer, or of every decoder_sparse_step-th, is that of routed experts, without shared ones.
#include <array>

#include "model/experts.h"
#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kNames{
    PartName{"router", "blk.{}.ffn_gate_inp", "model.layers.{}.mlp.gate"},
    PartName{"expert_gate_proj", "blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.*.gate_proj"},
    PartName{"expert_up_proj", "blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.*.up_proj"},
    PartName{"expert_down_proj", "blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.*.down_proj"},
};

void describe(ModelConfig& config) {
  if (config.style == FileStyle::HuggingFace) config.tied = false;
  // GGUF files have no key for it: every Qwen3-MoE normalises.
  config.experts.normalise = config.style == FileStyle::Gguf;
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.head_normed_attention(model.norm(x, "attention_norm")));
    x = model.add(x, routed_feed_forward(model, model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "qwen3_moe",
                         .gguf = "qwen3moe",
                         .hugging_face = "qwen3_moe",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& qwen3_moe_family() {
  return kFamily;
}

}  // namespace hone
