// The graph that src/model builds, of a made-up decoder: two layers, D = 64, H = 4, K = 2, E = 32, F = 96, V
// = 128.
#pragma once

#include "graph/graph.h"
#include "tensor/dtype.h"

namespace hone::test {

struct DecoderOptions {
  DType weights = DType::F32;
  std::int64_t rotary_dim = 32;  // R <= E
  bool interleaved = false;
  bool biases = false;      // on q, k, v, as Qwen2 has
  bool head_norms = false;  // on q and k, as Qwen3 has
};

// Fails the test if the graph cannot be built.
Graph decoder_graph(const DecoderOptions& options);

}  // namespace hone::test
