// x q8a times one panel of block-quantised weights.
//
// The order of additions of every output, on every ISA level and for every count of rows: blocks b of 32
// values of k in order, acc from 0; the integer dot d of a block is exact, then
//   acc = fma(f32(d), w_scale * x_scale, acc)      d = sum of x_quant * (w_quant - zero point of the type)
//   acc = fma(w_min, x_sum, acc)                   q4_1 only
// with the product of the scales rounded to f32. |d| <= 32 * 128 * 127 < 2^24, so f32(d) is exact.
#pragma once

#include "kernels/fast/dot.h"
#include "kernels/fast/matmul_rows.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

template <DType kWeight, int kRows>
static void matmul_rows_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                             const PanelShape& shape, std::int64_t blocks, float* sums) {
  constexpr std::int64_t kBlockBytes = kWeight == DType::Q8_0 ? 512 : 256;
  const auto* scales = reinterpret_cast<const std::uint16_t*>(panel);
  const auto* minima = reinterpret_cast<const std::uint16_t*>(panel + shape.minima);
  const auto* quants = reinterpret_cast<const std::uint8_t*>(panel + shape.quants);
  Vec16 acc[kRows];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) acc[r] = zero16();
  for (std::int64_t b = 0; b < blocks; ++b) {
    Vec16i dots[kRows];
    if constexpr (kWeight == DType::Q8_0) {
      dot_block_8<kRows>(quants + b * kBlockBytes, x + b, x_stride, dots);
    } else {
      dot_block_4<kRows, kWeight == DType::Q4_0>(quants + b * kBlockBytes, x + b, x_stride, dots);
    }
    const Vec16 scale = load_f16(scales + b * 16);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const BlockQ8A& block = x[r * x_stride + b];
      acc[r] = fma(to_f32(dots[r]), mul(scale, broadcast(block.scale)), acc[r]);
      if constexpr (kWeight == DType::Q4_1) {
        acc[r] = fma(load_f16(minima + b * 16), broadcast(block.sum), acc[r]);
      }
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) store(sums + r * 16, acc[r]);
}

// The sums of `rows` <= kTileRows rows of x (x_stride blocks apart) with one panel: sums [rows,16].
template <DType kWeight>
static void matmul_tile_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                             std::int64_t k_count, int rows, float* sums) {
  const PanelShape shape = panel_shape(kWeight, k_count);
  const std::int64_t blocks = k_count / 32;
  std::int64_t r = 0;
  for (; r + kDotRows <= rows; r += kDotRows) {
    matmul_rows_int8<kWeight, kDotRows>(x + r * x_stride, x_stride, panel, shape, blocks, sums + r * 16);
  }
  for (; r + 2 <= rows; r += 2) {
    matmul_rows_int8<kWeight, 2>(x + r * x_stride, x_stride, panel, shape, blocks, sums + r * 16);
  }
  if (r < rows) matmul_rows_int8<kWeight, 1>(x + r * x_stride, x_stride, panel, shape, blocks, sums + r * 16);
}

HONE_INLINE void matmul_tile_int8_of(DType weight, const BlockQ8A* x, std::int64_t x_stride,
                                     const std::byte* panel, std::int64_t k_count, int rows, float* sums) {
  switch (weight) {
    case DType::Q4_0:
      return matmul_tile_int8<DType::Q4_0>(x, x_stride, panel, k_count, rows, sums);
    case DType::Q4_1:
      return matmul_tile_int8<DType::Q4_1>(x, x_stride, panel, k_count, rows, sums);
    default:
      return matmul_tile_int8<DType::Q8_0>(x, x_stride, panel, k_count, rows, sums);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
