// The architecture families, one row each. A family turns a checkpoint into a graph of primitive ops.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "file/checkpoint.h"
#include "graph/graph.h"
#include "model/config.h"

namespace hone {

struct BuildOptions {
  // Adds the outputs hidden_embed, hidden_0 .. [B,T,D] and hidden_norm [R,D].
  bool hidden_outputs = false;
};

struct Family {
  std::string_view architecture;  // general.architecture
  bool rope_interleaved = false;  // how the checkpoint's q and k rows are ordered
  Result<Graph> (*build)(const Checkpoint& checkpoint, const ModelConfig& config,
                         const BuildOptions& options) = nullptr;
};

std::span<const Family> families();

// An error (BadModel) lists the architectures there are. `path` stands in its `where`.
Result<const Family*> find_family(std::string_view architecture, std::string_view path);

// The graph of the checkpoint's model. Inputs: ids i32[B,T], positions i32[B,T] (negative: padding), rows
// i32[R] (of the flattened [B*T], whose logits are wanted); states k.i and v.i f32[B,C,K,E]; outputs logits
// f32[R,V] and what `options` adds. Errors: tensors that are missing or have another shape than the metadata
// says, all of them at once.
Result<Graph> build_graph(const Checkpoint& checkpoint, const ModelConfig& config,
                          const BuildOptions& options);

}  // namespace hone
