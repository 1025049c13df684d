// ChatGLM3 and GLM-4-9B under their original names (Zeng et al. 2024, arXiv 2406.12793): Llama's layer with
// biases on q, k and v, q, k, v in one matrix and gate and up in another. The first half of each head turns,
// by interleaved pairs, with theta = 10000 * rope_ratio.
//
//   q | k | v = h Wqkv^T + b;  gate | up = h Wgu^T
#include <array>

#include "model/families.h"

namespace hone {
namespace {

constexpr std::array kNames{
    PartName{"embed_tokens", "token_embd", "transformer.embedding.word_embeddings"},
    PartName{"final_norm", "output_norm", "transformer.encoder.final_layernorm"},
    PartName{"lm_head", "output", "transformer.output_layer"},
    PartName{"attention_norm", "blk.{}.attn_norm", "transformer.encoder.layers.{}.input_layernorm"},
    PartName{"qkv_proj", "blk.{}.attn_qkv", "transformer.encoder.layers.{}.self_attention.query_key_value"},
    PartName{"o_proj", "blk.{}.attn_output", "transformer.encoder.layers.{}.self_attention.dense"},
    PartName{"feed_forward_norm", "blk.{}.ffn_norm",
             "transformer.encoder.layers.{}.post_attention_layernorm"},
    PartName{"gate_up_proj", "blk.{}.ffn_up", "transformer.encoder.layers.{}.mlp.dense_h_to_4h"},
    PartName{"down_proj", "blk.{}.ffn_down", "transformer.encoder.layers.{}.mlp.dense_4h_to_h"},
};

void describe(ModelConfig& config) {
  config.rope.interleaved = true;
  if (config.style == FileStyle::HuggingFace) config.tied = false;
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

constexpr Family kFamily{.name = "chatglm3",
                         .gguf = "chatglm",
                         .hugging_face = "chatglm",
                         .names = kNames,
                         .describe = describe,
                         .build = build};

}  // namespace

const Family& chatglm3_family() {
  return kFamily;
}

}  // namespace hone
