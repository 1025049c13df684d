// Qwen2-MoE (Qwen1.5-MoE and Qwen2-57B-A14B, arXiv 2407.10671): Qwen2's attention, with biases on q, k and v;
// routed experts, whose weights are a softmax over all experts that is not normalised again, and one shared
// expert weighted by a sigmoid of its own.
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
    PartName{"shared_gate_proj", "blk.{}.ffn_gate_shexp", "model.layers.{}.mlp.shared_expert.gate_proj"},
    PartName{"shared_up_proj", "blk.{}.ffn_up_shexp", "model.layers.{}.mlp.shared_expert.up_proj"},
    PartName{"shared_down_proj", "blk.{}.ffn_down_shexp", "model.layers.{}.mlp.shared_expert.down_proj"},
    PartName{"shared_router", "blk.{}.ffn_gate_inp_shexp", "model.layers.{}.mlp.shared_expert_gate"},
};

void describe(ModelConfig& config) {
  if (config.style == FileStyle::HuggingFace) {
    config.tied = false;
    config.qkv_bias = Bias::Required;
  }
}

void build(ModelBuilder& model) {
  ValueId x = model.embed();
  for (std::int64_t i = 0; i < model.config().layers; ++i) {
    const ModelBuilder::Layer layer(model, i);
    x = model.add(x, model.attention(model.norm(x, "attention_norm")));
    x = model.add(x, routed_feed_forward(model, model.norm(x, "feed_forward_norm")));
    model.end_layer(x);
  }
  model.head(x);
}

constexpr Family kFamily{.name = "qwen2_moe",
                         .gguf = "qwen2moe",
                         .hugging_face = "qwen2_moe",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& qwen2_moe_family() {
  return kFamily;
}

}  // namespace hone
