// x q8a times panels of block-quantised weights.
//
// The order of additions of every output, on every ISA level and for every count of rows and panels: blocks
// of 32 values of k in order, acc from 0; the integer dot d of a part of the block (fast/dot_format.h) is
// exact, then for each part in order
//   acc = fma(f32(d), w_scale * x_scale, acc)
// and after the parts of the block, where the format has minima,
//   acc = fma(w_min, x_sum, acc)
// with the product of the scales rounded to f32, and w_scale and w_min as decode_row computes them.
// |d| <= 32 * 128 * 127 < 2^24, so f32(d) is exact.
#pragma once

#include "kernels/fast/dot.h"
#include "kernels/fast/matmul_rows.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

template <DType kWeight, int kRows, int kPanels>
HONE_INLINE void add_block(const BlockQ8A* x, std::int64_t x_stride, const std::byte* blocks,
                           std::int64_t panel_bytes, std::int64_t index, const DotScales<kWeight>* scales,
                           Vec16 (&acc)[kRows][kPanels]) {
  using Format = DotFormat<kWeight>;
#pragma GCC unroll 2
  for (int part = 0; part < Format::kParts; ++part) {
    Vec16i dots[kRows][kPanels];
    dot_part<kWeight, kRows, kPanels>(blocks, panel_bytes, index, part, x, x_stride, dots);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec16 x_scale = broadcast(x[r * x_stride].scale);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) {
        const Vec16 scale = mul(scales[p].scale[index * Format::kParts + part], x_scale);
        acc[r][p] = fma(to_f32(dots[r][p]), scale, acc[r][p]);
      }
    }
  }
  if constexpr (Format::kMinimum) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec16 x_sum = broadcast(x[r * x_stride].sum);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) acc[r][p] = fma(scales[p].minimum[index], x_sum, acc[r][p]);
    }
  }
}

// So few rows are bound by reading weights. They take one panel after the other, a single stream through the
// tile: measured (Zen 5, two threads), two panels at a time read K formats at 65 % of what one reads, whose
// bursts of 2 KiB a panel then meet, and q8_0 and q4_0 at 95 %.
inline constexpr int kRowsOfOneStream = 2;

// In that stream weights are asked for so many bytes before they are read: the hardware follows no stream
// across a page, and loses it during what comes after the products of a tile. Behind a panel lies the next,
// so only a tile's first panel starts unasked. Measured (Zen 5, 0.5B): q8_0 +5 %, q4_0 +15 %.
inline constexpr std::int64_t kAhead = 4096;

// sums[p * kTileRows + r] [16] of kRows rows of x (x_stride blocks apart) and kPanels panels.
template <DType kWeight, int kRows, int kPanels>
static void matmul_rows_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                             const PanelShape& shape, std::int64_t blocks, float* sums) {
  constexpr std::int64_t kBlocks = DotFormat<kWeight>::kBlocks;
  Vec16 acc[kRows][kPanels];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) acc[r][p] = zero16();
  }
  for (std::int64_t s = 0; s < blocks / kBlocks; ++s) {
    DotScales<kWeight> scales[kPanels];
    for (int p = 0; p < kPanels; ++p) read_scales<kWeight>(panel + p * shape.bytes, shape, s, scales[p]);
    const std::byte* stored = dot_blocks_at<kWeight>(panel, shape, s);
    if constexpr (kRows <= kRowsOfOneStream) {
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* ahead = stored + p * shape.bytes + kAhead;
        for (std::int64_t i = 0; i < kStoredBytes<kWeight>; i += 64) __builtin_prefetch(ahead + i);
      }
    }
    for (std::int64_t index = 0; index < kBlocks; ++index) {
      add_block<kWeight, kRows, kPanels>(x + s * kBlocks + index, x_stride, stored, shape.bytes, index,
                                         scales, acc);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) store(sums + (std::int64_t{p} * kTileRows + r) * 16, acc[r][p]);
  }
}

template <DType kWeight, int kPanels>
static void matmul_panels_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                               const PanelShape& shape, std::int64_t blocks, int rows, float* sums) {
  std::int64_t r = 0;
  for (; r + kDotRows <= rows; r += kDotRows) {
    matmul_rows_int8<kWeight, kDotRows, kPanels>(x + r * x_stride, x_stride, panel, shape, blocks,
                                                 sums + r * 16);
  }
  for (; r + 2 <= rows; r += 2) {
    matmul_rows_int8<kWeight, 2, kPanels>(x + r * x_stride, x_stride, panel, shape, blocks, sums + r * 16);
  }
  if (r < rows) {
    matmul_rows_int8<kWeight, 1, kPanels>(x + r * x_stride, x_stride, panel, shape, blocks, sums + r * 16);
  }
}

// The sums of `rows` <= kTileRows rows of x (x_stride blocks apart) with `panels` panels behind one another:
// sums [panels,kTileRows,16].
template <DType kWeight>
static void matmul_tile_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                             std::int64_t k_count, int rows, std::int64_t panels, float* sums) {
  const PanelShape shape = panel_shape(kWeight, k_count);
  const std::int64_t blocks = k_count / 32;
  std::int64_t p = 0;
  for (; rows > kRowsOfOneStream && p + kDotPanels <= panels; p += kDotPanels) {
    matmul_panels_int8<kWeight, kDotPanels>(x, x_stride, panel + p * shape.bytes, shape, blocks, rows,
                                            sums + p * kTileRows * 16);
  }
  for (; p < panels; ++p) {
    matmul_panels_int8<kWeight, 1>(x, x_stride, panel + p * shape.bytes, shape, blocks, rows,
                                   sums + p * kTileRows * 16);
  }
}

HONE_INLINE void matmul_tile_int8_of(DType weight, const BlockQ8A* x, std::int64_t x_stride,
                                     const std::byte* panel, std::int64_t k_count, int rows,
                                     std::int64_t panels, float* sums) {
  switch (weight) {
    case DType::Q4_0:
      return matmul_tile_int8<DType::Q4_0>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q4_1:
      return matmul_tile_int8<DType::Q4_1>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q5_0:
      return matmul_tile_int8<DType::Q5_0>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q5_1:
      return matmul_tile_int8<DType::Q5_1>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q4_K:
      return matmul_tile_int8<DType::Q4_K>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q5_K:
      return matmul_tile_int8<DType::Q5_K>(x, x_stride, panel, k_count, rows, panels, sums);
    case DType::Q6_K:
      return matmul_tile_int8<DType::Q6_K>(x, x_stride, panel, k_count, rows, panels, sums);
    default:
      return matmul_tile_int8<DType::Q8_0>(x, x_stride, panel, k_count, rows, panels, sums);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
