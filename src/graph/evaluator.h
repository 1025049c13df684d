// Lets a pass compute (fold-constants) without knowing kernels: exec/ implements it with the reference
// kernels.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// A constant as the attribute `values` of a constant node holds it: row-major, exact in double for every
// element type but i64 and u64 beyond 2^53.
struct ConstantTensor {
  Type type;  // all dims constant
  std::vector<double> values;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // The outputs of `node` on `inputs`, with the reference kernel of its op. An error if the op has none, or
  // for symbolic dims.
  virtual Result<std::vector<ConstantTensor>> evaluate(const Node& node,
                                                       std::span<const ConstantTensor> inputs,
                                                       std::span<const Type> outputs) const = 0;
};

}  // namespace hone
