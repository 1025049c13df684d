// softmax(x [..,C]) -> f32 over the last axis: e = exp(x - max(x)), e / sum(e). The sum is f64
// (fast/sum16.h), rounded to f32 once. -inf gives 0; a row that is all -inf, and one that holds NaN or +inf,
// gives NaN in every element, as the chain of primitive ops does.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/math16.h"
#include "kernels/fast/sum16.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRowsPerTile = 4;

std::int64_t softmax_tiles(const Call& call) {
  return blocks_of(row_count(call.outputs[0]), kRowsPerTile);
}

void softmax_row(const float* x, std::int64_t length, float* out) {
  const Vec16 largest = broadcast(row_max(x, length));
  Sum16 sums;
  clear(sums);
  for (std::int64_t i = 0; i < length; i += 16) {
    const int count = lanes_left(length, i);
    const Vec16 e = exp(sub(load_partial(x + i, count), largest));
    store_partial(out + i, e, count);
    add_to(sums, count == 16 ? e : select(first_lanes(count), e, zero16()));
  }
  const Vec16 sum_of_all = broadcast(static_cast<float>(total(sums)));
  for (std::int64_t i = 0; i < length; i += 16) {
    const int count = lanes_left(length, i);
    store_partial(out + i, div(load_partial(out + i, count), sum_of_all), count);
  }
}

void softmax_run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t length = x.shape[x.rank - 1];
  if (length == 0) return;
  const std::int64_t end = smaller(row_count(out), (tile + 1) * kRowsPerTile);
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    softmax_row(static_cast<const float*>(x.data) + row_offset(x, row), length,
                static_cast<float*>(out.data) + row_offset(out, row));
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("softmax.f32"), "softmax", kThisIsa, false, accepts_softmax, softmax_tiles, softmax_run,
     nullptr},
};

}  // namespace

KernelList softmax_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
