// softmax along the last axis: exp(x - max x) / sum. An entry of -inf gives 0; a row that is all -inf, or
// that has a NaN or +inf, gives NaN everywhere, as the chain of primitive ops does. A tile is one row.
#include <cmath>
#include <limits>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.outputs[0], 1));
}

std::int64_t scratch_bytes(const Call& call) {
  return last_extent(call.outputs[0]) * 8;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < width; ++i) largest = values[i] > largest ? values[i] : largest;
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    values[i] = std::exp(values[i] - largest);
    sum += values[i];
  }
  for (std::int64_t i = 0; i < width; ++i) values[i] /= sum;
  store_reals(out, offset_of(without_last(out, 1), tile), last_stride(out), width, values);
}

constexpr Kernel kKernels[] = {{.name = "softmax.reference",
                                .op = "softmax",
                                .reference = true,
                                .accepts = needs_plain,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList softmax_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
