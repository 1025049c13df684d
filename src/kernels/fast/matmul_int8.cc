#include "kernels/fast/matmul_int8.h"

#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

std::int64_t scratch_bytes(const Call&) {
  return kTileSumsBytes;
}

void run(const Call& call, std::int64_t tile) {
  const MatmulSizes s = matmul_sizes(call);
  const MatmulTile t = matmul_tile(s, tile);
  const TensorView& w = call.inputs[1];
  const std::int64_t x_stride = s.x_stride / 32;
  const auto* x = static_cast<const BlockQ8A*>(call.inputs[0].data) + t.first_row * x_stride;
  const auto* panel = static_cast<const std::byte*>(w.data) + t.first_panel * panel_shape(w.dtype, s.k).bytes;
  auto* sums = reinterpret_cast<float*>(call.scratch);
  matmul_tile_int8_of(w.dtype, x, x_stride, panel, s.k, t.rows, t.panels, sums);
  store_tile(call, s, t, sums, [](const float* from) { return load(from); });
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("matmul.q8a.panel16"), "matmul", kThisIsa, false,
                                accepts_matmul_int8, matmul_tile_count, run, scratch_bytes}};

}  // namespace

KernelList matmul_int8_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
