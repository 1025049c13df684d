#include "decoder_graph.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "file/checkpoint.h"
#include "model/config.h"
#include "model/family.h"

namespace hone::test {
namespace {

constexpr std::int64_t kLayers = 2, kDim = 64, kHeads = 4, kKvHeads = 2, kHeadDim = 32, kFfn = 96,
                       kVocabulary = 128;

void add_tensor(Checkpoint& checkpoint, std::string name, DType dtype, std::vector<std::int64_t> shape) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.dtype = dtype;
  entry.type_name = dtype_name(dtype);
  entry.shape = std::move(shape);
  checkpoint.tensors.push_back(std::move(entry));
}

Checkpoint checkpoint_of(const DecoderOptions& options) {
  Checkpoint checkpoint;
  const auto matrix = [&](const std::string& name, std::int64_t out, std::int64_t in) {
    add_tensor(checkpoint, name + ".weight", options.weights, {out, in});
  };
  const auto vector = [&](const std::string& name, std::int64_t extent) {
    add_tensor(checkpoint, name, DType::F32, {extent});
  };
  matrix("token_embd", kVocabulary, kDim);
  vector("output_norm.weight", kDim);
  for (std::int64_t i = 0; i < kLayers; ++i) {
    const std::string block = fmt::format("blk.{}.", i);
    vector(block + "attn_norm.weight", kDim);
    vector(block + "ffn_norm.weight", kDim);
    matrix(block + "attn_q", kHeads * kHeadDim, kDim);
    matrix(block + "attn_k", kKvHeads * kHeadDim, kDim);
    matrix(block + "attn_v", kKvHeads * kHeadDim, kDim);
    matrix(block + "attn_output", kDim, kHeads * kHeadDim);
    matrix(block + "ffn_gate", kFfn, kDim);
    matrix(block + "ffn_up", kFfn, kDim);
    matrix(block + "ffn_down", kDim, kFfn);
    if (options.biases) {
      vector(block + "attn_q.bias", kHeads * kHeadDim);
      vector(block + "attn_k.bias", kKvHeads * kHeadDim);
      vector(block + "attn_v.bias", kKvHeads * kHeadDim);
    }
    if (options.head_norms) {
      vector(block + "attn_q_norm.weight", kHeadDim);
      vector(block + "attn_k_norm.weight", kHeadDim);
    }
  }
  return checkpoint;
}

}  // namespace

Graph decoder_graph(const DecoderOptions& options) {
  ModelConfig config;
  config.architecture = options.head_norms ? "qwen3" : "qwen2";
  config.family = config.architecture;
  config.vocabulary = kVocabulary;
  config.dim = kDim;
  config.layers = kLayers;
  config.heads = kHeads;
  config.kv_heads = kKvHeads;
  config.head_dim = kHeadDim;
  config.v_head_dim = kHeadDim;
  config.ffn = kFfn;
  config.rope.dim = options.rotary_dim;
  config.context_length = 256;
  config.norm_eps = 1e-5;
  config.attention_scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  config.rope.interleaved = options.interleaved;
  Result<Graph> graph = build_graph(checkpoint_of(options), config, {});
  if (!graph.ok()) {
    ADD_FAILURE() << graph.error().where << ": " << graph.error().message << "; " << graph.error().actual;
    return {};
  }
  return std::move(graph).value();
}

}  // namespace hone::test
