// Walking several views of one shape: broadcasting, and merging of axes that lie behind one another in every
// view.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "tensor/view.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// The stride of `view` along axis `axis` of a shape of `rank` axes that it broadcasts to: right aligned, 0
// where the view lacks the axis or has one element along it.
inline std::int64_t stride_along(const TensorView& view, int axis, int rank) {
  const int own = axis - (rank - view.rank);
  return own < 0 || view.shape[own] == 1 ? 0 : view.strides[own];
}

// Groups of adjacent axes of a shape, outermost first. Group g has size[g] elements; a view's stride along it
// is its stride along axis last[g]. There is at least one group.
struct Axes {
  int rank = 0;
  int count = 0;
  std::int64_t elements = 1;
  std::int64_t size[kMaxRank] = {};
  int last[kMaxRank] = {};
};

inline bool merges(const TensorView* views, int view_count, int rank, int outer, int inner,
                   std::int64_t size) {
  for (int i = 0; i < view_count; ++i) {
    if (stride_along(views[i], outer, rank) != stride_along(views[i], inner, rank) * size) return false;
  }
  return true;
}

// The axes of `shape`, merged as far as the strides of all `inputs` and `outputs` allow.
inline Axes merge_axes(const TensorView& shape, const TensorView* inputs, int input_count,
                       const TensorView* outputs, int output_count) {
  Axes axes;
  axes.rank = shape.rank;
  for (int axis = 0; axis < shape.rank; ++axis) {
    const std::int64_t size = shape.shape[axis];
    axes.elements *= size;
    if (size == 1) continue;
    const int outer = axes.count == 0 ? -1 : axes.last[axes.count - 1];
    if (axes.count > 0 && merges(inputs, input_count, shape.rank, outer, axis, size) &&
        merges(outputs, output_count, shape.rank, outer, axis, size)) {
      axes.size[axes.count - 1] *= size;
      axes.last[axes.count - 1] = axis;
    } else {
      axes.size[axes.count] = size;
      axes.last[axes.count] = axis;
      ++axes.count;
    }
  }
  if (axes.count == 0) {
    axes.size[0] = 1;
    axes.last[0] = shape.rank - 1;
    axes.count = 1;
  }
  return axes;
}

// A run of elements along the innermost group.
struct Run {
  std::int64_t offset = 0;  // of the first element in the view, in elements
  std::int64_t length = 0;  // up to the end of the group
};

// The run of `view` that starts at flat (row-major) index `index` of the shape.
inline Run run_at(const Axes& axes, const TensorView& view, std::int64_t index) {
  Run run;
  for (int group = axes.count - 1; group >= 0; --group) {
    const std::int64_t size = axes.size[group];
    const std::int64_t rest = index / size;
    const std::int64_t at = index - rest * size;
    if (group == axes.count - 1) run.length = size - at;
    run.offset += at * stride_along(view, axes.last[group], axes.rank);
    index = rest;
  }
  return run;
}

// Rows of the last axis: their number, and where row `row` (row-major over the other axes) of `view` starts.
// The view has the shape itself, without broadcasting.
inline std::int64_t row_count(const TensorView& view) {
  std::int64_t rows = 1;
  for (int axis = 0; axis < view.rank - 1; ++axis) rows *= view.shape[axis];
  return rows;
}
inline std::int64_t row_offset(const TensorView& view, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = view.rank - 2; axis >= 0; --axis) {
    const std::int64_t rest = row / view.shape[axis];
    offset += (row - rest * view.shape[axis]) * view.strides[axis];
    row = rest;
  }
  return offset;
}

// Whose state row (b,t) belongs to: sequence b, or in a flattened step what input number `input`, i32 [1,N],
// says; it is absent where the launch has fewer inputs.
inline std::int64_t sequence_of(const Call& call, std::int64_t input, std::int64_t b, std::int64_t t) {
  if (input < 0 || input >= call.input_count) return b;
  const TensorView& sequence = call.inputs[input];
  return static_cast<const std::int32_t*>(sequence.data)[b * sequence.strides[0] + t * sequence.strides[1]];
}

inline std::int64_t blocks_of(std::int64_t count, std::int64_t block) {
  return (count + block - 1) / block;
}
inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
