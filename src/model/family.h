// The architecture families: which checkpoints they read, and how each becomes a graph of primitive ops.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "file/checkpoint.h"
#include "graph/graph.h"
#include "model/blocks.h"
#include "model/config.h"
#include "model/names.h"

namespace hone {

struct Family {
  std::string_view name;            // of its file in model/
  std::string_view gguf;            // values of general.architecture, separated by spaces
  std::string_view hugging_face;    // values of model_type in config.json
  std::span<const PartName> names;  // where they differ from common_names()
  // Before the keys are read: what every checkpoint of the family has and no key says. nullptr: nothing.
  void (*describe)(ModelConfig& config) = nullptr;
  // After: what follows from the keys. nullptr: nothing.
  void (*derive)(ModelConfig& config) = nullptr;
  void (*build)(ModelBuilder& model) = nullptr;
};

// Of a value of general.architecture or model_type. An error (BadModel) lists the architectures there are;
// `where` is the place it names.
Result<const Family*> find_family(std::string_view architecture, FileStyle style, std::string where);

// True if `word` is one of the words of `list`, which spaces separate.
bool in_list(std::string_view list, std::string_view word);

// The graph of the checkpoint's model. Inputs: ids i32[B,T], positions i32[B,T] (negative: padding), rows
// i32[R] (of the flattened [B*T], whose logits are wanted), and where the rotary table depends on it lengths
// i32[B] (of the sequences after the step, or after the whole prompt); states k.i and v.i f32[B,C,K,E], or
// k.i alone; outputs logits f32[R,V] and what `options` adds. Errors: keys that are refused, tensors that are
// missing, have another shape than the metadata says or are of no use, all of them at once.
Result<Graph> build_graph(const Checkpoint& checkpoint, const ModelConfig& config,
                          const BuildOptions& options);

}  // namespace hone
