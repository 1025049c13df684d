// norm_add: y = r + rms_norm(x, w), and z = rms_norm(y, next) of y as it was rounded. A tile is one row.
#include <cmath>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t norm_add_tiles(const Call& call) {
  return element_count(without_last(call.outputs[0], 1));
}

std::int64_t norm_add_scratch(const Call& call) {
  return last_extent(call.outputs[0]) * 16;
}

// rms_norm of `values` in place, by a weight [D] that `factors` has room for.
void norm_values(double* values, std::int64_t width, const TensorView& weight, double eps, double offset,
                 double* factors) {
  load_reals(weight, 0, last_stride(weight), width, factors);
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += values[i] * values[i];
  const double scale = 1 / std::sqrt(sum / static_cast<double>(width) + eps);
  for (std::int64_t i = 0; i < width; ++i) values[i] *= scale * (factors[i] + offset);
}

void norm_add_run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& residual = call.inputs[2];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  double* operand = values + width;
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  norm_values(values, width, call.inputs[1], call.attributes->real("eps"),
              call.attributes->real("offset", 0.0), operand);
  load_reals(residual, offset_of(without_last(residual, 1), tile), last_stride(residual), width, operand);
  for (std::int64_t i = 0; i < width; ++i)
    values[i] = static_cast<double>(static_cast<float>(values[i] + operand[i]));
  store_reals(out, offset_of(without_last(out, 1), tile), last_stride(out), width, values);
  if (call.output_count < 2) return;
  const TensorView& normed = call.outputs[1];
  norm_values(values, width, call.inputs[3], call.attributes->real("next_eps"),
              call.attributes->real("next_offset", 0.0), operand);
  store_reals(normed, offset_of(without_last(normed, 1), tile), last_stride(normed), width, values);
}

constexpr Kernel kNormAddKernels[] = {{.name = "norm_add.reference",
                                       .op = "norm_add",
                                       .reference = true,
                                       .accepts = needs_plain_inputs,
                                       .tile_count = norm_add_tiles,
                                       .run = norm_add_run,
                                       .scratch_bytes = norm_add_scratch}};

}  // namespace

KernelList norm_add_kernels() {
  return {kNormAddKernels, 1};
}

}  // namespace hone::kernels::reference
