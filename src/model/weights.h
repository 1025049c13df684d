// A checkpoint's tensors as weight inputs of a graph: collects what is missing or misshapen, to report it all
// at once.
#pragma once

#include <string>
#include <vector>

#include "file/checkpoint.h"
#include "graph/builder.h"

namespace hone {

class Weights {
 public:
  Weights(const Checkpoint& checkpoint, GraphBuilder& builder) : checkpoint_(checkpoint), builder_(builder) {}

  bool has(const std::string& name) const { return checkpoint_.find_tensor(name) != nullptr; }

  // The weight `name` of this shape. A missing or misshapen one is noted, and some value comes back all the
  // same.
  ValueId get(const std::string& name, const std::vector<std::int64_t>& shape);
  // The same, cast to f32 if it is stored in another float type: norms and biases.
  ValueId get_f32(const std::string& name, const std::vector<std::int64_t>& shape);

  // An error that lists everything noted.
  Status check() const;

 private:
  const Checkpoint& checkpoint_;
  GraphBuilder& builder_;
  std::vector<std::string> faults_;
};

}  // namespace hone
