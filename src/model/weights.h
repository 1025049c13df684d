// A checkpoint's tensors as weight inputs of a graph: collects what is missing, misshapen or left over, to
// report it all at once.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "file/checkpoint.h"
#include "graph/builder.h"
#include "model/config.h"
#include "model/names.h"

namespace hone {

class Weights {
 public:
  Weights(const Checkpoint& checkpoint, const ModelConfig& config, std::span<const PartName> names,
          GraphBuilder& builder)
      : checkpoint_(checkpoint), config_(config), names_(names), builder_(builder) {}

  // The layer whose parts get() means; for parts outside of layers it does not matter.
  void set_layer(std::int64_t layer) { layer_ = layer; }

  // `suffix`: "weight" or "bias"; empty for parts whose name is the whole.
  bool has(std::string_view part, std::string_view suffix = "weight");
  // The weight of this part and shape. A missing or misshapen one is noted, and some value comes back all the
  // same.
  ValueId get(std::string_view part, const std::vector<std::int64_t>& shape,
              std::string_view suffix = "weight");
  // A part whose name has a `*` and whose shape has three axes is a stack (file/stacked_tensors.h).
  // The same, cast to f32 if it is stored in another float type: norms and biases.
  ValueId get_f32(std::string_view part, const std::vector<std::int64_t>& shape,
                  std::string_view suffix = "weight");
  // Says that the checkpoint may hold this part and that nothing reads it.
  void skip(std::string_view part, std::string_view suffix = "weight");

  // An error that lists everything noted, every tensor that nobody asked for, with the name it may be meant
  // to have, and what the config refuses.
  Status check() const;

 private:
  ValueId get_stack(const std::string& name, const std::vector<std::int64_t>& shape);
  std::string name_of(std::string_view part, std::string_view suffix) const;
  std::vector<std::string> unknown_tensors() const;

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  std::span<const PartName> names_;
  GraphBuilder& builder_;
  std::int64_t layer_ = 0;
  std::set<std::string> asked_;  // whether they are there or not
  std::set<std::string> used_;
  std::vector<std::string> faults_;
};

}  // namespace hone
