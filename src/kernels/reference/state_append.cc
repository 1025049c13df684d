// state_append: row (b,t) of `new` goes to state[b, positions[b,t]], or with a fourth input row (0,n) to
// state[sequence[0,n], positions[0,n]]; a negative position is padding. A tile is one row. Rows of reals for
// a state of q8_0 are rounded to it (reference/elements.h:store_reals).
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

// A run of blocks at a time.
void round_entry(const TensorView& from, const TensorView& to) {
  constexpr std::int64_t kBlock = 32;
  for_each_run(from, 0, element_count(from), kBlock, [&](std::int64_t first, std::int64_t count) {
    double values[kBlock];
    load_reals(from, offset_of(from, first), last_stride(from), count, values);
    store_reals(to, offset_of(to, first), last_stride(to), count, values);
  });
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& rows = call.inputs[1];
  const TensorView& positions = call.inputs[2];
  const std::int64_t position = integer_at(positions, tile);
  if (position < 0) return;
  const std::int64_t b = tile / positions.shape[1];
  const std::int64_t sequence = call.input_count == 4 ? integer_at(call.inputs[3], tile) : b;
  if (rows.dtype != call.outputs[0].dtype) {
    TensorView to = row_at(call.outputs[0], sequence, position);
    to.data = row_at(in_blocks(call.outputs[0]), sequence, position).data;
    return round_entry(row_at(rows, b, tile % positions.shape[1]), to);
  }
  const TensorView from = row_at(in_blocks(rows), b, tile % positions.shape[1]);
  copy_elements(from, row_at(in_blocks(call.outputs[0]), sequence, position), 0, element_count(from));
}

std::string_view accepts(const Signature& signature) {
  const DType state = signature.inputs[0].dtype;
  const DType rows = signature.inputs[1].dtype;
  if (state != rows && (state != DType::Q8_0 || !is_real(rows)))
    return "needs rows of the state's element type, or of reals for a state of q8_0";
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
