// layer_norm: (x - mean) / sqrt(mean((x - mean)^2) + eps) * w + b along the last axis (Ba, Kiros and Hinton,
// "Layer Normalization", 2016). A tile is one row.
#include <cmath>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

std::int64_t scratch_bytes(const Call& call) {
  return last_extent(call.outputs[0]) * 24;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  double* factors = values + width;
  double* summands = factors + width;
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  load_reals(call.inputs[1], 0, last_stride(call.inputs[1]), width, factors);
  load_reals(call.inputs[2], 0, last_stride(call.inputs[2]), width, summands);
  double mean = 0;
  for (std::int64_t i = 0; i < width; ++i) mean += values[i] / static_cast<double>(width);
  double variance = 0;
  for (std::int64_t i = 0; i < width; ++i)
    variance += (values[i] - mean) * (values[i] - mean) / static_cast<double>(width);
  const double scale = 1 / std::sqrt(variance + call.attributes->real("eps"));
  for (std::int64_t i = 0; i < width; ++i) values[i] = (values[i] - mean) * scale * factors[i] + summands[i];
  store_row(out, x.rank, tile, width, values);
}

constexpr Kernel kKernels[] = {{.name = "layer_norm.reference",
                                .op = "layer_norm",
                                .reference = true,
                                .accepts = needs_plain_inputs,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList layer_norm_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
