// rms_norm: x / sqrt(mean(x^2) + eps) * (w + offset) along the last axis (Zhang and Sennrich, "Root Mean
// Square Layer Normalization", 2019). A tile is one row.
#include <cmath>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

std::int64_t scratch_bytes(const Call& call) {
  return last_extent(call.outputs[0]) * 16;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& weight = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  double* factors = values + width;
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  load_reals(weight, 0, last_stride(weight), width, factors);
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += values[i] * values[i];
  const double scale = 1 / std::sqrt(sum / static_cast<double>(width) + call.attributes->real("eps"));
  const double offset = call.attributes->real("offset", 0.0);
  for (std::int64_t i = 0; i < width; ++i) values[i] = values[i] * scale * (factors[i] + offset);
  store_row(out, x.rank, tile, width, values);
}

constexpr Kernel kKernels[] = {{.name = "rms_norm.reference",
                                .op = "rms_norm",
                                .reference = true,
                                .accepts = needs_plain_inputs,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList rms_norm_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
