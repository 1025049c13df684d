// swiglu_mlp: silu(x Wg^T) * (x Wu^T), silu(z) = z / (1 + exp(-z)), and geglu_mlp with gelu(z) = z/2 (1 +
// tanh(sqrt(2/pi) (z + 0.044715 z^3))) (Shazeer, "GLU Variants Improve Transformer", 2020).
#include <cmath>
#include <numbers>

#include "kernels/reference/columns.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return ceil_divide(last_extent(call.outputs[0]), kColumns);
}

std::int64_t scratch_bytes(const Call& call) {
  return column_scratch_bytes(last_extent(call.inputs[0]), 2);
}

ColumnSource weight(const TensorView& view, std::int64_t k) {
  ColumnSource source{view, 0, 0, 1, k};
  if (view.layout == Layout::Strided) {
    source.n_stride = view.strides[0];
    source.k_stride = view.strides[1];
  }
  return source;
}

double silu(double z) {
  return z / (1 + std::exp(-z));
}
double gelu(double z) {
  return z / 2 * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (z + 0.044715 * z * z * z)));
}

template <double (*kGate)(double)>
void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t k = last_extent(x);
  const std::int64_t n = last_extent(out);
  const std::int64_t first = tile * kColumns;
  const std::int64_t count = std::min(kColumns, n - first);
  const ColumnSource gate = weight(call.inputs[1], k);
  const ColumnSource up = weight(call.inputs[2], k);
  const ColumnScratch scratch = column_scratch(call.scratch, k, 2);
  double* up_columns = scratch.columns + k * kColumns;
  load_columns(gate, first, n, scratch.decoded, scratch.columns);
  load_columns(up, first, n, scratch.decoded, up_columns);
  const TensorView x_rows = without_last(x, 1);
  const TensorView out_rows = without_last(out, 1);
  for (std::int64_t row = 0; row < element_count(out_rows); ++row) {
    const std::int64_t x_offset = offset_of(x_rows, row);
    load_reals(x, x_offset, last_stride(x), k, scratch.row);
    double gates[kColumns];
    double ups[kColumns];
    dot_columns(scratch.row, scratch.columns, k, gates);
    dot_columns(scratch.row, up_columns, k, ups);
    for (std::int64_t j = 0; j < count; ++j) gates[j] = kGate(gates[j]) * ups[j];
    store_reals(out, offset_of(out_rows, row) + first * last_stride(out), last_stride(out), count, gates);
  }
}

std::string_view accepts(const Signature& signature) {
  const OperandSpec& x = signature.inputs[0];
  if (!is_real(x.dtype) && x.dtype != DType::Q8A) return "needs activations of f64, f32, f16, bf16 or q8a";
  if (x.layout != Layout::Strided) return "needs activations that are not packed";
  for (const OperandSpec& matrix : signature.inputs.subspan(1)) {
    if (!is_contraction_type(matrix.dtype)) return "needs weights of a float type";
  }
  return {};
}

constexpr Kernel kKernels[] = {{.name = "swiglu_mlp.reference",
                                .op = "swiglu_mlp",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run<silu>,
                                .scratch_bytes = scratch_bytes},
                               {.name = "geglu_mlp.reference",
                                .op = "geglu_mlp",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run<gelu>,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList swiglu_mlp_kernels() {
  return {kKernels, 2};
}

}  // namespace hone::kernels::reference
