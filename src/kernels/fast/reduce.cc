// reduce_sum, reduce_mean, reduce_max over the last axis of f32. Sums are f64 (fast/sum16.h), rounded to f32
// once; the mean is divided in f64 before that. The maximum is NaN if a value is NaN. No values: sum 0, mean
// NaN, max -inf.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/sum16.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRowsPerTile = 16;

std::int64_t reduce_tiles(const Call& call) {
  return blocks_of(row_count(call.inputs[0]), kRowsPerTile);
}

double row_sum(const float* x, std::int64_t length) {
  Sum16 sums;
  clear(sums);
  for (std::int64_t i = 0; i < length; i += 16) add_to(sums, load_partial(x + i, lanes_left(length, i)));
  return total(sums);
}

// Where the result of row `row` lies: the output has the axes of the input but the last, or has 1 there
// (keep_dims).
std::int64_t result_offset(const TensorView& out, const TensorView& x, std::int64_t row) {
  std::int64_t offset = 0;
  for (int axis = x.rank - 2; axis >= 0; --axis) {
    const std::int64_t rest = row / x.shape[axis];
    offset += (row - rest * x.shape[axis]) * out.strides[axis];
    row = rest;
  }
  return offset;
}

template <class Reduce>
void reduce_rows(const Call& call, std::int64_t tile, Reduce reduce) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t length = x.shape[x.rank - 1];
  const std::int64_t end = smaller(row_count(x), (tile + 1) * kRowsPerTile);
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    static_cast<float*>(out.data)[result_offset(out, x, row)] =
        reduce(static_cast<const float*>(x.data) + row_offset(x, row), length);
  }
}

void reduce_sum_run(const Call& call, std::int64_t tile) {
  reduce_rows(call, tile,
              [](const float* x, std::int64_t length) { return static_cast<float>(row_sum(x, length)); });
}
void reduce_mean_run(const Call& call, std::int64_t tile) {
  reduce_rows(call, tile, [](const float* x, std::int64_t length) {
    return static_cast<float>(row_sum(x, length) / static_cast<double>(length));
  });
}
void reduce_max_run(const Call& call, std::int64_t tile) {
  reduce_rows(call, tile, [](const float* x, std::int64_t length) {
    return length == 0 ? -__builtin_inff() : row_max(x, length);
  });
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("reduce_sum.f32"), "reduce_sum", kThisIsa, false, accepts_reduce, reduce_tiles,
     reduce_sum_run, nullptr},
    {HONE_KERNEL_NAME("reduce_mean.f32"), "reduce_mean", kThisIsa, false, accepts_reduce, reduce_tiles,
     reduce_mean_run, nullptr},
    {HONE_KERNEL_NAME("reduce_max.f32"), "reduce_max", kThisIsa, false, accepts_reduce, reduce_tiles,
     reduce_max_run, nullptr},
};

}  // namespace

KernelList reduce_kernels() {
  return {kKernels, 3};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
