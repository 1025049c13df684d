// matmul: a tile is eight output columns of all rows that share the right operand, so each of its rows is
// decoded once.
#include "kernels/reference/columns.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

// Output rows are numbered over all axes but the last. A 2-D right operand serves them all: one group.
// Otherwise each index of the leading axes is a group of M rows.
struct Problem {
  std::int64_t k = 0, n = 0, groups = 1, rows = 1;
  bool transpose_b = false;
  TensorView lead;  // the leading axes of the output
};

Problem problem_of(const Call& call) {
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  const TensorView& out = call.outputs[0];
  Problem problem;
  problem.transpose_b = call.attributes != nullptr && call.attributes->integer("transpose_b") != 0;
  problem.k = last_extent(a);
  problem.n = last_extent(out);
  problem.lead = without_last(out, a.rank > 1 ? 2 : 1);
  problem.rows = element_count(without_last(out, 1));
  if (b.rank > 2) {
    problem.groups = element_count(problem.lead);
    problem.rows = a.rank > 1 ? out.shape[out.rank - 2] : 1;
  }
  return problem;
}

std::int64_t tile_count(const Call& call) {
  const Problem problem = problem_of(call);
  return problem.groups * ceil_divide(problem.n, kColumns);
}

std::int64_t scratch_bytes(const Call& call) {
  return column_scratch_bytes(last_extent(call.inputs[0]), 1);
}

void run(const Call& call, std::int64_t tile) {
  const Problem problem = problem_of(call);
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t tiles_per_group = ceil_divide(problem.n, kColumns);
  const std::int64_t group = tile / tiles_per_group;
  const std::int64_t first = tile % tiles_per_group * kColumns;
  ColumnSource source{b, 0, 0, 1, problem.k};
  if (b.layout == Layout::Strided) {
    source.offset = problem.groups > 1 ? broadcast_offset(without_last(b, 2), problem.lead, group) : 0;
    source.n_stride = b.strides[problem.transpose_b ? b.rank - 2 : b.rank - 1];
    source.k_stride = b.strides[problem.transpose_b ? b.rank - 1 : b.rank - 2];
  }
  const ColumnScratch scratch = column_scratch(call.scratch, problem.k, 1);
  load_columns(source, first, problem.n, scratch.decoded, scratch.columns);
  const TensorView a_rows = without_last(a, 1);
  const TensorView out_rows = without_last(out, 1);
  const std::int64_t count = std::min(kColumns, problem.n - first);
  for (std::int64_t row = group * problem.rows; row < (group + 1) * problem.rows; ++row) {
    const std::int64_t a_offset = broadcast_offset(a_rows, out_rows, row);
    load_reals(a, a_offset, last_stride(a), problem.k, scratch.row);
    double sums[kColumns];
    dot_columns(scratch.row, scratch.columns, problem.k, sums);
    store_reals(out, offset_of(out_rows, row) + first * last_stride(out), last_stride(out), count, sums);
  }
}

std::string_view accepts(const Signature& signature) {
  const OperandSpec& a = signature.inputs[0];
  const OperandSpec& b = signature.inputs[1];
  if (!is_real(a.dtype) && a.dtype != DType::Q8A) return "needs a left operand of f64, f32, f16, bf16 or q8a";
  if (!is_contraction_type(b.dtype)) return "needs a right operand of a float type";
  if (signature.outputs[0].dtype != DType::F32) return "needs an f32 result";
  const bool transposed =
      signature.attributes != nullptr && signature.attributes->integer("transpose_b") != 0;
  const bool is_weight_form = b.shape.size() == 2 && transposed;
  if ((b.layout == Layout::Panel16 || dtype_row(b.dtype).is_quantised) && !is_weight_form) {
    return "needs a packed or block-quantised right operand as [N,K] with transpose_b";
  }
  if (a.layout != Layout::Strided || signature.outputs[0].layout != Layout::Strided) {
    return "needs a left operand that is not packed";
  }
  return {};
}

constexpr Kernel kKernels[] = {{.name = "matmul.reference",
                                .op = "matmul",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList matmul_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
