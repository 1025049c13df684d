// A checkpoint of a known shape with random weights: what bench runs on, so that anyone can measure without a
// download.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/dtype.h"

namespace hone {

// The shape of a public model.
struct ModelShape {
  std::string_view name;  // "qwen2-0.5b"
  std::string_view architecture;
  std::int64_t layers = 0;
  std::int64_t dim = 0;         // D
  std::int64_t ffn = 0;         // F
  std::int64_t heads = 0;       // H
  std::int64_t kv_heads = 0;    // K
  std::int64_t head_dim = 0;    // E
  std::int64_t vocabulary = 0;  // V
  bool tied = false;            // no output matrix of its own
  bool attention_bias = false;  // on q, k, v
};

std::span<const ModelShape> model_shapes();
// An error (Usage) lists the shapes there are.
Result<ModelShape> find_shape(std::string_view name);

// The types of a random model's matrices.
struct RandomWeights {
  DType type = DType::Q8_0;  // f32, f16, bf16, q8_0, q6_k, q5_0, q4_k, q4_1 or q4_0
  bool mix = false;          // as QuantizeOptions::mix
  // Of the output matrix, or of the token embedding where it serves as one; else by the two above.
  std::optional<DType> output;
};

// Writes a GGUF file of `shape` (norms and biases f32) whose matrices are drawn from `seed`, of about the
// size that keeps activations in range. A matrix whose rows are no whole blocks of its type gets the next
// wider one, as quantize_file does. The vocabulary is made up (random_vocabulary.h).
Status write_random_model(const ModelShape& shape, const RandomWeights& weights, std::uint64_t seed,
                          const std::string& path);

// The header of such a file and, behind it, a hole where the tensors would be: enough for all that reads
// headers only, such as a plan. No file system block is taken for the hole. Errors as above.
Status write_model_header(const ModelShape& shape, const RandomWeights& weights, const std::string& path);

}  // namespace hone
