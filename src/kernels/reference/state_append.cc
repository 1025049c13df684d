// state_append: row (b,t) of `new` goes to state[b, positions[b,t]], or with a fourth input row (0,n) to
// state[sequence[0,n], positions[0,n]]; a negative position is padding. A tile is one row.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(call.inputs[2]);
}

// The view of what lies at index (i, j) of the two outer axes.
TensorView row_at(const TensorView& view, std::int64_t i, std::int64_t j) {
  TensorView row = view;
  row.rank = view.rank - 2;
  for (int axis = 0; axis < row.rank; ++axis) {
    row.shape[axis] = view.shape[axis + 2];
    row.strides[axis] = view.strides[axis + 2];
  }
  const std::int64_t size = dtype_row(view.dtype).block_bytes;
  row.data = static_cast<std::byte*>(view.data) + (i * view.strides[0] + j * view.strides[1]) * size;
  return row;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& rows = call.inputs[1];
  const TensorView& positions = call.inputs[2];
  const std::int64_t position = integer_at(positions, tile);
  if (position < 0) return;
  const std::int64_t b = tile / positions.shape[1];
  const TensorView from = row_at(in_blocks(rows), b, tile % positions.shape[1]);
  const std::int64_t sequence = call.input_count == 4 ? integer_at(call.inputs[3], tile) : b;
  copy_elements(from, row_at(in_blocks(call.outputs[0]), sequence, position), 0, element_count(from));
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].dtype != signature.inputs[1].dtype) return "needs rows of the state's element type";
  return needs_strided(signature);
}

constexpr Kernel kKernels[] = {{.name = "state_append.reference",
                                .op = "state_append",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run}};

}  // namespace

KernelList state_append_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
