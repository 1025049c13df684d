// Views without copies: how a value lies in the buffer of another, as strides and an offset over symbolic
// sizes.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

struct StridedView {
  Shape shape;
  std::vector<Dim> strides;  // in elements; 0 along a broadcast axis
  Dim offset{0};             // in elements from the start of the buffer
};

// Row-major strides of a contiguous tensor.
std::vector<Dim> contiguous_strides(std::span<const Dim> shape);

// True if the elements lie one after the other, whatever the sizes (strides of axes of extent 1 do not
// matter).
bool is_contiguous(const StridedView& view);

// The result of the view op `node` over `input`; nullopt if it needs a copy (a reshape across a permuted
// axis).
std::optional<StridedView> apply_view(const Node& node, const StridedView& input, const Shape& result);

}  // namespace hone
