// The built-in rows, one group per source file.
#pragma once

#include <span>

#include "graph/op_row.h"

namespace hone {

std::span<const OpRow> elementwise_rows();  // op_rows_elementwise.cc
std::span<const OpRow>
primitive_rows();  // op_rows_primitive.cc: sources, views, reductions, contractions, data, state
std::span<const OpRow>
routing_rows();  // op_rows_routing.cc: choosing experts and multiplying by the chosen ones
std::span<const OpRow> fused_rows();  // op_rows_fused.cc

// The work of a row that only moves or makes values.
inline Dim no_operations(const Node&, std::span<const Type>, std::span<const Type>) {
  return Dim(0);
}

// For type rules.
Error type_error(std::string message, std::string expected = {});
// The shape that elementwise operands broadcast to (aligned at the right; extent 1 repeats).
Result<Shape> broadcast_shapes(std::span<const Type> inputs);
// `axis` counted from the end if negative; an error if outside the rank.
Result<std::size_t> normalise_axis(std::int64_t axis, std::size_t rank);

}  // namespace hone
