// Checkpoints of names and shapes only: what reading a config and building a graph look at.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/family.h"

namespace hone::test {

inline void add_tensor(Checkpoint& checkpoint, std::string name, std::vector<std::int64_t> shape) {
  TensorEntry entry;
  entry.name = std::move(name);
  entry.dtype = DType::F32;
  entry.type_name = "f32";
  entry.shape = std::move(shape);
  checkpoint.tensors.push_back(std::move(entry));
}

// A Llama of 2 layers, D = 16, H = 4, K = 2, E = 4, F = 24, V = 32.
inline Checkpoint made_gguf() {
  Checkpoint checkpoint;
  checkpoint.path = "made.gguf";
  checkpoint.metadata = Metadata("made.gguf");
  Metadata& metadata = checkpoint.metadata;
  metadata.add_string("general.architecture", "llama");
  metadata.add_integer("llama.embedding_length", 16);
  metadata.add_integer("llama.block_count", 2);
  metadata.add_integer("llama.feed_forward_length", 24);
  metadata.add_integer("llama.context_length", 64);
  metadata.add_integer("llama.attention.head_count", 4);
  metadata.add_integer("llama.attention.head_count_kv", 2);
  metadata.add_real("llama.attention.layer_norm_rms_epsilon", 1e-5);
  add_tensor(checkpoint, "token_embd.weight", {32, 16});
  add_tensor(checkpoint, "output_norm.weight", {16});
  for (int i = 0; i < 2; ++i) {
    const std::string block = fmt::format("blk.{}.", i);
    add_tensor(checkpoint, block + "attn_norm.weight", {16});
    add_tensor(checkpoint, block + "attn_q.weight", {16, 16});
    add_tensor(checkpoint, block + "attn_k.weight", {8, 16});
    add_tensor(checkpoint, block + "attn_v.weight", {8, 16});
    add_tensor(checkpoint, block + "attn_output.weight", {16, 16});
    add_tensor(checkpoint, block + "ffn_norm.weight", {16});
    add_tensor(checkpoint, block + "ffn_gate.weight", {24, 16});
    add_tensor(checkpoint, block + "ffn_up.weight", {24, 16});
    add_tensor(checkpoint, block + "ffn_down.weight", {16, 24});
  }
  return checkpoint;
}

inline nlohmann::json llama_json() {
  return {{"model_type", "llama"},
          {"hidden_size", 16},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"intermediate_size", 24},
          {"vocab_size", 32},
          {"rms_norm_eps", 1e-5},
          {"max_position_embeddings", 64},
          {"tie_word_embeddings", true},
          {"hidden_act", "silu"},
          {"rope_theta", 10000.0},
          {"rope_scaling", nullptr}};
}

// The same Llama in Hugging Face's names, with this config.json.
inline Checkpoint made_folder(const nlohmann::json& config) {
  Checkpoint checkpoint;
  checkpoint.path = "made";
  checkpoint.config = std::make_shared<const nlohmann::json>(config);
  add_tensor(checkpoint, "model.embed_tokens.weight", {32, 16});
  add_tensor(checkpoint, "model.norm.weight", {16});
  for (int i = 0; i < 2; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    add_tensor(checkpoint, layer + "input_layernorm.weight", {16});
    add_tensor(checkpoint, layer + "self_attn.q_proj.weight", {16, 16});
    add_tensor(checkpoint, layer + "self_attn.k_proj.weight", {8, 16});
    add_tensor(checkpoint, layer + "self_attn.v_proj.weight", {8, 16});
    add_tensor(checkpoint, layer + "self_attn.o_proj.weight", {16, 16});
    add_tensor(checkpoint, layer + "post_attention_layernorm.weight", {16});
    add_tensor(checkpoint, layer + "mlp.gate_proj.weight", {24, 16});
    add_tensor(checkpoint, layer + "mlp.up_proj.weight", {24, 16});
    add_tensor(checkpoint, layer + "mlp.down_proj.weight", {16, 24});
  }
  return checkpoint;
}

// Reads the config and builds the graph, as compiling does.
inline Result<Graph> build(const Checkpoint& checkpoint) {
  const ModelConfig config = HONE_TRY(read_config(checkpoint));
  return build_graph(checkpoint, config, {});
}

inline std::string text_of(const Error& error) {
  return error.where + ": " + error.message + "; expected " + error.expected + ", not " + error.actual;
}

inline void expect_says(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace hone::test
