// rms_norm(x [..,D], w [D]) {eps, offset} -> f32, bf16, or q8a [..,D] or in two terms [..,2,D]: x *
// (1/sqrt(mean(x^2) + eps)) * (w + offset). The mean and the root are f64 (fast/sum16.h); the reciprocal is
// rounded to f32 once, and the sum and each of the two products once.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/fast/rms_norm_row.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kRowsPerTile = 4;

std::int64_t rms_norm_tiles(const Call& call) {
  return blocks_of(row_count(call.inputs[0]), kRowsPerTile);
}

void rms_norm_run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const double eps = attribute_real(call.attributes, "eps", 0.0);
  const auto offset = static_cast<float>(attribute_real(call.attributes, "offset", 0.0));
  const std::int64_t length = x.shape[x.rank - 1];
  const std::int64_t end = smaller(row_count(x), (tile + 1) * kRowsPerTile);
  const std::int64_t terms = out.rank - x.rank + 1;
  for (std::int64_t row = tile * kRowsPerTile; row < end; ++row) {
    const float* from = static_cast<const float*>(x.data) + row_offset(x, row);
    const auto* w = static_cast<const float*>(call.inputs[1].data);
    if (out.dtype == DType::Q8A) {
      auto* blocks = static_cast<BlockQ8A*>(out.data);
      rms_norm_row_q8a(from, w, eps, offset, length, blocks + row_offset(out, row * terms) / 32,
                       terms == 2 ? blocks + row_offset(out, row * terms + 1) / 32 : nullptr);
    } else if (out.dtype == DType::BF16) {
      rms_norm_row_bf16(from, w, eps, offset, length,
                        static_cast<std::uint16_t*>(out.data) + row_offset(out, row));
    } else {
      rms_norm_row_f32(from, w, eps, offset, length, static_cast<float*>(out.data) + row_offset(out, row));
    }
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("rms_norm.f32"), "rms_norm", kThisIsa, false, accepts_rms_norm, rms_norm_tiles,
     rms_norm_run, nullptr},
};

}  // namespace

KernelList rms_norm_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
