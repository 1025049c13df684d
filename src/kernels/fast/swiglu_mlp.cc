// swiglu_mlp: silu(x Wg^T) * (x Wu^T), and geglu_mlp with gelu for silu. A tile computes the same panels of
// both matrices; each product has the order of additions of its matmul kernel, so the result has the bits of
// matmul, matmul, silu or gelu, mul.
#include "kernels/fast/file_rows.h"
#include "kernels/fast/math16.h"
#include "kernels/fast/matmul_bf16.h"
#include "kernels/fast/matmul_float.h"
#include "kernels/fast/matmul_int8.h"
#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

std::int64_t scratch_bytes(const Call& call) {
  const std::int64_t gate = file_rows_scratch(call.inputs[1]);
  const std::int64_t up = file_rows_scratch(call.inputs[2]);
  return kSegmentBytes + 2 * kTileSumsBytes + (gate > up ? gate : up);
}

using Gate = Vec16 (*)(Vec16);

template <Gate kGate>
void run(const Call& call, std::int64_t tile) {
  const MatmulSizes s = matmul_sizes(call);
  const MatmulTile t = matmul_tile(s, tile);
  auto* decoded = reinterpret_cast<float*>(call.scratch);
  for (int side = 0; side < 2; ++side) {
    const TensorView& w = call.inputs[1 + side];
    auto* sums = reinterpret_cast<float*>(call.scratch + kSegmentBytes + side * kTileSumsBytes);
    const auto multiply = [&](const std::byte* panel, std::int64_t p, std::int64_t n) {
      float* to = sums + p * kTileRows * 16;
      if (call.inputs[0].dtype == DType::Q8A) {
        const auto* x = static_cast<const BlockQ8A*>(call.inputs[0].data) + t.first_row * (s.x_stride / 32);
        matmul_tile_int8_of(w.dtype, x, s.x_stride / 32, panel, s.k, t.rows, n, to);
      } else if (call.inputs[0].dtype == DType::BF16) {
        const auto* x = static_cast<const std::uint16_t*>(call.inputs[0].data) + t.first_row * s.x_stride;
        matmul_tile_bf16(x, s.x_stride, panel, s.k, t.rows, n, to);
      } else {
        const auto* x = static_cast<const float*>(call.inputs[0].data) + t.first_row * s.x_stride;
        matmul_tile_float_of(w.dtype, x, s.x_stride, panel, s.k, t.rows, n, decoded, to);
      }
    };
    for_panels(w, t.first_panel, t.panels, call.scratch + kSegmentBytes + 2 * kTileSumsBytes, multiply);
  }
  const auto* gate = reinterpret_cast<const float*>(call.scratch + kSegmentBytes);
  store_tile(call, s, t, gate,
             [](const float* from) { return mul(kGate(load(from)), load(from + kTileSumsBytes / 4)); });
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("swiglu_mlp.bf16.panel16"), "swiglu_mlp", kThisIsa, false,
                                accepts_swiglu_bf16, matmul_tile_count, run<silu>, scratch_bytes},
                               {HONE_KERNEL_NAME("geglu_mlp.bf16.panel16"), "geglu_mlp", kThisIsa, false,
                                accepts_swiglu_bf16, matmul_tile_count, run<gelu_tanh>, scratch_bytes},
                               {HONE_KERNEL_NAME("swiglu_mlp.q8a.panel16"), "swiglu_mlp", kThisIsa, false,
                                accepts_swiglu_int8, matmul_tile_count, run<silu>, scratch_bytes},
                               {HONE_KERNEL_NAME("geglu_mlp.q8a.panel16"), "geglu_mlp", kThisIsa, false,
                                accepts_swiglu_int8, matmul_tile_count, run<gelu_tanh>, scratch_bytes},
                               {HONE_KERNEL_NAME("swiglu_mlp.f32.panel16"), "swiglu_mlp", kThisIsa, false,
                                accepts_swiglu_float, matmul_tile_count, run<silu>, scratch_bytes},
                               {HONE_KERNEL_NAME("geglu_mlp.f32.panel16"), "geglu_mlp", kThisIsa, false,
                                accepts_swiglu_float, matmul_tile_count, run<gelu_tanh>, scratch_bytes}};

}  // namespace

KernelList swiglu_mlp_kernels() {
  if (kThisIsa == Isa::Amx) return {kKernels, 2};  // tiles are of bf16
  return {kKernels, 6};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
