// Changing the element type of a value, and of all that follows from it.
#pragma once

#include <span>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// Gives `values` (f32) the element type `dtype` (f16, bf16 or q8_0). Views of them follow; matmul's right
// operand, and keys and values of attention (whose body follows), read the new type as it is; every other
// reader, and every output of the graph, gets a cast back to f32 in front.
Status retype_values(Graph& graph, std::span<const ValueId> values, DType dtype);

}  // namespace hone
