// swiglu_mlp: silu(x Wg^T) * (x Wu^T), and geglu_mlp with gelu for silu. A tile computes the same panel of
// both matrices; each product has the order of additions of its matmul kernel, so the result has the bits of
// matmul, matmul, silu or gelu, mul.
#include "kernels/fast/math16.h"
#include "kernels/fast/matmul_float.h"
#include "kernels/fast/matmul_int8.h"
#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

std::int64_t scratch_bytes(const Call&) {
  return kSegmentBytes + 2 * kTileSumsBytes;
}

using Gate = Vec16 (*)(Vec16);

template <Gate kGate>
void run(const Call& call, std::int64_t tile) {
  const MatmulSizes s = matmul_sizes(call);
  const MatmulTile t = matmul_tile(s, tile);
  auto* decoded = reinterpret_cast<float*>(call.scratch);
  for (int side = 0; side < 2; ++side) {
    const TensorView& w = call.inputs[1 + side];
    const auto* panel = static_cast<const std::byte*>(w.data) + t.panel * panel_shape(w.dtype, s.k).bytes;
    auto* sums = reinterpret_cast<float*>(call.scratch + kSegmentBytes + side * kTileSumsBytes);
    if (call.inputs[0].dtype == DType::Q8A) {
      const auto* x = static_cast<const BlockQ8A*>(call.inputs[0].data) + t.first_row * (s.x_stride / 32);
      matmul_tile_int8_of(w.dtype, x, s.x_stride / 32, panel, s.k, t.rows, sums);
    } else {
      const auto* x = static_cast<const float*>(call.inputs[0].data) + t.first_row * s.x_stride;
      matmul_tile_float_of(w.dtype, x, s.x_stride, panel, s.k, t.rows, decoded, sums);
    }
  }
  const auto* gate = reinterpret_cast<const float*>(call.scratch + kSegmentBytes);
  const auto* up = gate + kTileSumsBytes / 4;
  auto* out =
      static_cast<float*>(call.outputs[0].data) + t.first_row * s.out_stride + t.panel * kPanelColumns;
  for (std::int64_t r = 0; r < t.rows; ++r) {
    const Vec16 value = mul(kGate(load(gate + r * 16)), load(up + r * 16));
    store_tile_row(out + r * s.out_stride, value, t.columns);
  }
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("swiglu_mlp.q8a.panel16"), "swiglu_mlp", kThisIsa, false,
                                accepts_swiglu_int8, matmul_tile_count, run<silu>, scratch_bytes},
                               {HONE_KERNEL_NAME("swiglu_mlp.f32.panel16"), "swiglu_mlp", kThisIsa, false,
                                accepts_swiglu_float, matmul_tile_count, run<silu>, scratch_bytes},
                               {HONE_KERNEL_NAME("geglu_mlp.q8a.panel16"), "geglu_mlp", kThisIsa, false,
                                accepts_swiglu_int8, matmul_tile_count, run<gelu_tanh>, scratch_bytes},
                               {HONE_KERNEL_NAME("geglu_mlp.f32.panel16"), "geglu_mlp", kThisIsa, false,
                                accepts_swiglu_float, matmul_tile_count, run<gelu_tanh>, scratch_bytes}};

}  // namespace

KernelList swiglu_mlp_kernels() {
  return {kKernels, 4};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
