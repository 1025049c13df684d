// norm_add(x [..,D], w [D], r [..,D]) {eps, offset} -> y = r + rms_norm(x, w), f32
// norm_add(x, w, r, next [D]) {.., next_eps, next_offset} -> y, and z = rms_norm(y, next), f32, bf16 or q8a
// Each with the bits of the launches it replaces: the norms as fast/rms_norm.cc states, the sum rounded once.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/fast/rms_norm_row.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kNormAddRows = 4;

std::int64_t norm_add_tiles(const Call& call) {
  return blocks_of(row_count(call.outputs[0]), kNormAddRows);
}

const float* f32_row(const TensorView& view, std::int64_t row) {
  return static_cast<const float*>(view.data) + row_offset(view, row);
}

// z of row `row`, which `y` is.
void norm_sum(const Call& call, std::int64_t row, const float* y) {
  const auto* w = static_cast<const float*>(call.inputs[3].data);
  const double eps = attribute_real(call.attributes, "next_eps", 0.0);
  const auto offset = static_cast<float>(attribute_real(call.attributes, "next_offset", 0.0));
  const TensorView& out = call.outputs[1];
  const std::int64_t length = out.shape[out.rank - 1];
  if (out.dtype == DType::Q8A) {
    rms_norm_row_q8a(y, w, eps, offset, length, static_cast<BlockQ8A*>(out.data) + row_offset(out, row) / 32,
                     nullptr);
  } else if (out.dtype == DType::BF16) {
    rms_norm_row_bf16(y, w, eps, offset, length,
                      static_cast<std::uint16_t*>(out.data) + row_offset(out, row));
  } else {
    rms_norm_row_f32(y, w, eps, offset, length, static_cast<float*>(out.data) + row_offset(out, row));
  }
}

void norm_add_run(const Call& call, std::int64_t tile) {
  const TensorView& out = call.outputs[0];
  const auto* w = static_cast<const float*>(call.inputs[1].data);
  const double eps = attribute_real(call.attributes, "eps", 0.0);
  const auto offset = static_cast<float>(attribute_real(call.attributes, "offset", 0.0));
  const std::int64_t length = out.shape[out.rank - 1];
  const std::int64_t end = smaller(row_count(out), (tile + 1) * kNormAddRows);
  for (std::int64_t row = tile * kNormAddRows; row < end; ++row) {
    const float* residual = f32_row(call.inputs[2], row);
    float* y = static_cast<float*>(out.data) + row_offset(out, row);
    rms_norm_row(f32_row(call.inputs[0], row), w, eps, offset, length,
                 [residual, y](std::int64_t i, Vec16 normed, int count) {
                   store_partial(y + i, add(load_partial(residual + i, count), normed), count);
                 });
    if (call.output_count == 2) norm_sum(call, row, y);
  }
}

constexpr Kernel kNormAddKernels[] = {
    {HONE_KERNEL_NAME("norm_add.f32"), "norm_add", kThisIsa, false, accepts_norm_add, norm_add_tiles,
     norm_add_run, nullptr},
};

}  // namespace

KernelList norm_add_kernels() {
  return {kNormAddKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
