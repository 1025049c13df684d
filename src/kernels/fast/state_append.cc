// state_append(state [B,C,..], new [B,T,..], positions i32 [B,T]) -> state: writes new[b,t] at state[b,
// positions[b,t]]; of a flattened step new [1,N,..] goes to state[sequence[0,n], positions[0,n]]. A position
// < 0 is padding and writes nothing. Bytes are copied as they are; f32 rows for a state of q8_0 are rounded
// to it (fast/q8_0_block.h).
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/q8_0_block.h"
#include "kernels/fast/run_copy.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kTokensPerTile = 8;

std::int64_t state_append_tiles(const Call& call) {
  return blocks_of(call.inputs[1].shape[0] * call.inputs[1].shape[1], kTokensPerTile);
}

// The view of entry (i, j) of the first two axes.
TensorView entry_of(const TensorView& view, std::int64_t i, std::int64_t j) {
  TensorView entry = view;
  const std::int64_t offset = i * view.strides[0] + j * view.strides[1];
  const std::int64_t bytes =
      view.dtype == DType::Q8_0 ? offset / 32 * 34 : offset * element_bytes(view.dtype);
  entry.data = static_cast<char*>(view.data) + bytes;
  entry.rank = view.rank - 2;
  for (int axis = 0; axis < entry.rank; ++axis) {
    entry.shape[axis] = view.shape[axis + 2];
    entry.strides[axis] = view.strides[axis + 2];
  }
  return entry;
}

// Rows of f32 to rows of q8_0, of one shape.
void quantize_entry(const TensorView& from, const TensorView& to) {
  const int last = from.rank - 1;
  std::int64_t rows = 1;
  for (int axis = 0; axis < last; ++axis) rows *= from.shape[axis];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t from_offset = 0;
    std::int64_t to_offset = 0;
    std::int64_t index = row;
    for (int axis = last - 1; axis >= 0; --axis) {
      from_offset += index % from.shape[axis] * from.strides[axis];
      to_offset += index % from.shape[axis] * to.strides[axis];
      index /= from.shape[axis];
    }
    const float* values = static_cast<const float*>(from.data) + from_offset;
    char* blocks = static_cast<char*>(to.data) + to_offset / 32 * 34;
    for (std::int64_t i = 0; i < from.shape[last]; i += 32)
      quantize_block_q8_0(values + i, blocks + i / 32 * 34);
  }
}

void state_append_run(const Call& call, std::int64_t tile) {
  const TensorView& added = call.inputs[1];
  const TensorView& positions = call.inputs[2];
  const std::int64_t tokens = added.shape[1];
  const std::int64_t end = smaller(added.shape[0] * tokens, (tile + 1) * kTokensPerTile);
  for (std::int64_t i = tile * kTokensPerTile; i < end; ++i) {
    const std::int64_t b = i / tokens;
    const std::int64_t t = i % tokens;
    const std::int64_t position =
        static_cast<const std::int32_t*>(positions.data)[b * positions.strides[0] + t * positions.strides[1]];
    if (position < 0) continue;
    const TensorView from = entry_of(added, b, t);
    const TensorView to = entry_of(call.outputs[0], sequence_of(call, 3, b, t), position);
    if (to.dtype == DType::Q8_0) {
      quantize_entry(from, to);
      continue;
    }
    const Axes axes = merge_axes(from, &from, 1, &to, 1);
    copy_elements(axes, from, to, element_bytes(added.dtype), 0, axes.elements);
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("state_append.bytes"), "state_append", kThisIsa, false, accepts_state_append,
     state_append_tiles, state_append_run, nullptr},
};

}  // namespace

KernelList state_append_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
