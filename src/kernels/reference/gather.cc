// gather: rows of a table [V,D] of any float type by number. A tile is one row of the output.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(call.inputs[1]);
}

// One row in double, and in f32 for a packed table.
std::int64_t scratch_bytes(const Call& call) {
  return last_extent(call.outputs[0]) * 12;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& table = call.inputs[0];
  const TensorView& ids = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  std::int64_t id = 0;
  load_integers(ids, offset_of(ids, tile), 1, 1, &id);
  auto* values = reinterpret_cast<double*>(call.scratch);
  if (table.layout == Layout::Panel16) {
    auto* decoded = reinterpret_cast<float*>(values + width);
    unpack_column(table.dtype, table.data, id, width, decoded);
    for (std::int64_t i = 0; i < width; ++i) values[i] = static_cast<double>(decoded[i]);
  } else {
    load_reals(table, id * table.strides[0], table.strides[1], width, values);
  }
  store_reals(out, offset_of(without_last(out, 1), tile), last_stride(out), width, values);
}

std::string_view accepts(const Signature& signature) {
  const DType dtype = signature.inputs[0].dtype;
  if (!dtype_row(dtype).is_float) return "needs a table of a float type";
  return signature.inputs[1].layout == Layout::Strided ? "" : "needs row numbers that are not packed";
}

constexpr Kernel kKernels[] = {{.name = "gather.reference",
                                .op = "gather",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList gather_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
