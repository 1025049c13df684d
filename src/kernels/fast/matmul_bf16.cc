#include "kernels/fast/matmul_bf16.h"

#include "kernels/fast/file_rows.h"
#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

std::int64_t scratch_bytes(const Call& call) {
  return kTileSumsBytes + file_rows_scratch(call.inputs[1]);
}

void run(const Call& call, std::int64_t tile) {
  const MatmulSizes s = matmul_sizes(call);
  const MatmulTile t = matmul_tile(s, tile);
  const auto* x = static_cast<const std::uint16_t*>(call.inputs[0].data) + t.first_row * s.x_stride;
  auto* sums = reinterpret_cast<float*>(call.scratch);
  for_panels(call.inputs[1], t.first_panel, t.panels, call.scratch + kTileSumsBytes,
             [&](const std::byte* panel, std::int64_t p, std::int64_t n) {
               matmul_tile_bf16(x, s.x_stride, panel, s.k, t.rows, n, sums + p * kTileRows * 16);
             });
  store_tile(call, s, t, sums, [](const float* from) { return load(from); });
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("matmul.bf16.panel16"), "matmul", kThisIsa, false,
                                accepts_matmul_bf16, matmul_tile_count, run, scratch_bytes}};

}  // namespace

KernelList matmul_bf16_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
