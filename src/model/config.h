// The hyper-parameters of a decoder-only transformer, read from a checkpoint's metadata.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

struct ModelConfig {
  std::string architecture;     // "llama", as general.architecture says
  std::int64_t vocabulary = 0;  // V
  std::int64_t dim = 0;         // D
  std::int64_t layers = 0;
  std::int64_t heads = 0;           // H
  std::int64_t kv_heads = 0;        // K
  std::int64_t head_dim = 0;        // E
  std::int64_t ffn = 0;             // F
  std::int64_t rotary_dim = 0;      // of each head's E, how many turn
  std::int64_t context_length = 0;  // tokens the model was trained for
  double norm_eps = 0;
  double rope_theta = 0;
  bool rope_interleaved = false;  // pairs (2i, 2i+1); else (i, i + rotary_dim/2)
};

// Reads the keys of the GGUF specification (`ARCH.embedding_length` ..). Errors (File): a key that is missing
// or has another type; a value out of range; a key that changes the maths and is not supported, all of them
// at once; an architecture hone has no family for.
Result<ModelConfig> read_config(const Checkpoint& checkpoint);

}  // namespace hone
