// The hyper-parameters of a decoder-only transformer, as a checkpoint's metadata or its config.json says.
// Plain data: the builders in this folder turn it into a graph, and what no family reads has its neutral
// value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

// Whose tensor names, conventions and keys a checkpoint has.
enum class FileStyle : std::uint8_t { Gguf, HuggingFace };

// How the rotary frequencies differ from theta^(-2i/R); formulas in model/rotary.h.
enum class RopeKind : std::uint8_t {
  Plain,
  Linear,    // divided by `factor`
  Dynamic,   // theta grows with the sequence's length
  Llama3,    // long wavelengths divided by `factor`, the middle blended
  Yarn,      // a ramp over the pairs between both
  LongRope,  // one of two lists of divisors, by the sequence's length
};

struct RopeConfig {
  RopeKind kind = RopeKind::Plain;
  double theta = 10000;
  std::int64_t dim = 0;      // R: of each head's E, how many turn
  bool interleaved = false;  // pairs (2i, 2i+1); else (i, i + R/2)
  double factor = 1;
  double original_context = 0;  // tokens before the scaling
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;               // Yarn: the ramp's ends are whole numbers
  double attention_factor = 1;        // on cos and sin
  std::vector<double> short_factors;  // LongRope, R/2 of each; empty: tensors of the checkpoint have them
  std::vector<double> long_factors;

  // The table depends on the sequence's length: keys keep the turn of the length at which they were computed.
  bool depends_on_length() const { return kind == RopeKind::Dynamic || kind == RopeKind::LongRope; }
};

enum class Activation : std::uint8_t { Silu, GeluTanh };

// Whether a projection adds a bias.
enum class Bias : std::uint8_t { None, IfPresent, Required };

// Routed experts; `count` 0: the feed-forward is dense.
struct ExpertConfig {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t ffn = 0;           // F of one expert
  std::int64_t shared_count = 0;  // experts that every token takes
  std::int64_t shared_ffn = 0;    // F of all shared ones together
  std::int64_t first_layer = 0;   // layers before it are dense
  std::int64_t layer_step = 1;    // of the rest, every step-th has experts
  std::vector<std::int64_t> dense_layers;
  std::int64_t groups = 1;  // experts stand in groups, of which `groups_per_token` are chosen first
  std::int64_t groups_per_token = 1;
  bool normalise = false;  // the chosen weights are divided by their sum
  bool sigmoid = false;    // scores by sigmoid, else softmax
  double scale = 1;        // on the chosen weights
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434); `kv_rank` 0: there is none.
struct LatentConfig {
  std::int64_t q_rank = 0;  // 0: q is projected at once
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;  // of each query head, not turned
  std::int64_t rope_dim = 0;  // turned
  // Keys and values are not made of the latent: what would make them stands at the queries and at the result
  // (model/deepseek.cc), and the cache holds the latent.
  bool absorbed = false;
};

struct ModelConfig {
  std::string architecture;  // as the file says: general.architecture or model_type
  std::string family;        // name of the row of model/family.cc
  FileStyle style = FileStyle::Gguf;

  std::int64_t vocabulary = 0;  // V
  std::int64_t dim = 0;         // D
  std::int64_t layers = 0;
  std::int64_t heads = 0;           // H
  std::int64_t kv_heads = 0;        // K
  std::int64_t head_dim = 0;        // E of q and k
  std::int64_t v_head_dim = 0;      // E of v
  std::int64_t ffn = 0;             // F
  std::int64_t context_length = 0;  // tokens the model was trained for
  bool any_context = false;         // the rope adapts to any length

  double norm_eps = 0;
  double norm_offset = 0;  // a norm multiplies by offset + w
  Activation activation = Activation::Silu;
  Bias qkv_bias = Bias::IfPresent;
  Bias o_bias = Bias::IfPresent;
  Bias feed_forward_bias = Bias::IfPresent;
  // The embedding serves as output matrix; nullopt: where the file has no other.
  std::optional<bool> tied;

  RopeConfig rope;
  std::optional<RopeConfig> local_rope;  // of the layers with a sliding window, where it differs
  double attention_scale = 0;            // on q k^T
  double attention_softcap = 0;          // c tanh(score / c); 0: none
  double final_softcap = 0;              // the same on the logits
  double embedding_scale = 1;
  std::int64_t sliding_window = 0;   // tokens a sliding layer sees, itself included; 0: none
  std::vector<bool> sliding_layers;  // which layers slide; empty: none

  ExpertConfig experts;
  LatentConfig latent;
  // Layers that stand behind the model's own in the checkpoint and predict further tokens; hone leaves them
  // out.
  std::int64_t prediction_layers = 0;

  // Of a Hugging Face folder that holds other models beside the text model (model/config_text_model.cc): what
  // stands before the text model's names in place of "model.", and before "lm_head"; and how the names of the
  // other models begin, which hone leaves out.
  std::string body_prefix = "model.";
  std::string head_prefix;
  std::vector<std::string> other_models;

  // What the file asks for and hone does not implement, "key = value" each. build_graph refuses them together
  // with the tensors that do not fit.
  std::vector<std::string> refused;
  // One line each: keys that nobody knows, tensors that are left out.
  std::vector<std::string> warnings;
  // One line each: what is left out on purpose, which changes nothing that hone computes.
  std::vector<std::string> notes;

  bool slides(std::int64_t layer) const {
    return sliding_window > 0 && static_cast<std::size_t>(layer) < sliding_layers.size() &&
           sliding_layers[static_cast<std::size_t>(layer)];
  }
  bool depends_on_length() const {
    return rope.depends_on_length() || (local_rope && local_rope->depends_on_length());
  }
};

// Reads the keys of the GGUF specification (`ARCH.embedding_length` ..) or of Hugging Face's config.json, in
// its old form (rope_scaling) and its new one (rope_parameters). Errors (File): keys that are missing, have
// another type or are out of range, all of them at once; an architecture hone has no family for. Keys that
// change the maths and are not implemented stand in `refused`, keys nobody knows in `warnings`.
Result<ModelConfig> read_config(const Checkpoint& checkpoint);

}  // namespace hone
