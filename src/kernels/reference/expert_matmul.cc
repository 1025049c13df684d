// expert_matmul: x [..,J,K] or [..,1,K], w [X,N,K], experts i32 [..,J] -> f32 [..,J,N]; row j is
// w[experts[j]] x. A tile is eight output columns of one expert for all rows that chose it, so each of its
// columns is decoded once.
#include "kernels/reference/columns.h"
#include "kernels/reference/list.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tiles_per_expert(const Call& call) {
  return ceil_divide(call.inputs[1].shape[1], kColumns);
}

std::int64_t tile_count(const Call& call) {
  return call.inputs[1].shape[0] * tiles_per_expert(call);
}

std::int64_t scratch_bytes(const Call& call) {
  return column_scratch_bytes(last_extent(call.inputs[0]), 1);
}

ColumnSource columns_of(const TensorView& w, std::int64_t expert) {
  ColumnSource source{w, 0, 0, 1, w.shape[2]};
  if (w.layout == Layout::Panel16) {
    source.view.data =
        static_cast<std::byte*>(w.data) + expert * panel_bytes(w.dtype, w.shape[1], w.shape[2]);
  } else {
    source.offset = expert * w.strides[0];
    source.n_stride = w.strides[1];
    source.k_stride = w.strides[2];
  }
  return source;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& w = call.inputs[1];
  const TensorView& experts = call.inputs[2];
  const TensorView& out = call.outputs[0];
  const std::int64_t expert = tile / tiles_per_expert(call);
  const std::int64_t first = tile % tiles_per_expert(call) * kColumns;
  const std::int64_t k = last_extent(x);
  const ColumnScratch scratch = column_scratch(call.scratch, k, 1);
  const TensorView x_rows = without_last(x, 1);
  const TensorView out_rows = without_last(out, 1);
  const std::int64_t count = std::min(kColumns, w.shape[1] - first);
  bool loaded = false;
  for (std::int64_t row = 0; row < element_count(experts); ++row) {
    std::int64_t chosen = 0;
    load_integers(experts, offset_of(experts, row), 1, 1, &chosen);
    if (chosen != expert) continue;
    if (!loaded) load_columns(columns_of(w, expert), first, w.shape[1], scratch.decoded, scratch.columns);
    loaded = true;
    load_reals(x, broadcast_offset(x_rows, out_rows, row), last_stride(x), k, scratch.row);
    double sums[kColumns];
    dot_columns(scratch.row, scratch.columns, k, sums);
    store_reals(out, offset_of(out_rows, row) + first * last_stride(out), last_stride(out), count, sums);
  }
}

std::string_view accepts(const Signature& signature) {
  const OperandSpec& x = signature.inputs[0];
  if (!is_real(x.dtype) && x.dtype != DType::Q8A) return "needs rows of f64, f32, f16, bf16 or q8a";
  if (!is_contraction_type(signature.inputs[1].dtype)) return "needs weights of a float type";
  if (signature.outputs[0].dtype != DType::F32) return "needs an f32 result";
  for (const OperandSpec* operand : {&x, &signature.inputs[2], signature.outputs.data()}) {
    if (operand->layout != Layout::Strided) return "needs rows and experts that are not packed";
  }
  return {};
}

constexpr Kernel kKernels[] = {{.name = "expert_matmul.reference",
                                .op = "expert_matmul",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList expert_matmul_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
