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

// Block `index` of those at `blocks`. scale[p] and minimum[p] are of panel p, the first of them of block 0.
template <DType kWeight, bool kUnpacked, int kRows, int kPanels>
HONE_INLINE void add_block(const BlockQ8A* x, std::int64_t x_stride, const std::byte* blocks,
                           std::int64_t panel_bytes, std::int64_t index, const Vec16* const (&scale)[kPanels],
                           const Vec16* const (&minimum)[kPanels], Vec16 (&acc)[kRows][kPanels]) {
  using Format = DotFormat<kWeight>;
#pragma GCC unroll 2
  for (int part = 0; part < Format::kParts; ++part) {
    Vec16i dots[kRows][kPanels];
    dot_part<kWeight, kUnpacked, kRows, kPanels>(blocks, panel_bytes, index, part, x, x_stride, dots);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec16 x_scale = broadcast(x[r * x_stride].scale);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) {
        acc[r][p] = fma(to_f32(dots[r][p]), mul(scale[p][index * Format::kParts + part], x_scale), acc[r][p]);
      }
    }
  }
  if constexpr (Format::kMinimum) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec16 x_sum = broadcast(x[r * x_stride].sum);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) acc[r][p] = fma(minimum[p][index], x_sum, acc[r][p]);
    }
  }
}

// So few rows are bound by reading weights. They take one panel after the other, a single stream through the
// tile: measured (Zen 5, two threads), two panels at a time read K formats at 65 % of what one reads, whose
// bursts of 2 KiB a panel then meet, and q8_0 and q4_0 at 95 %.
inline constexpr int kRowsOfOneStream = 2;

// In that stream weights are asked for so many bytes before they are read: the hardware follows no stream
// across a page, and loses it during what comes after the products of a tile. Behind a panel lies the next,
// so only a tile's first panel starts unasked. Measured (Zen 5, 0.5B): q8_0 +5 %, q4_0 +15 %. 4 bits take
// longer a byte, so that 4 KiB are not enough where memory is fast (q4_0 6 % slower than with 6 KiB, at 85
// GB/s); q8_0 and K formats lose 2 to 7 % with 6 KiB. Asking for the next tile's start before the columns of
// this one are finished cost 1 to 4 %.
template <DType kWeight>
inline constexpr std::int64_t kAhead = kStoredBytes<kWeight> <= 5 * 64 ? 6144 : 4096;

// Blocks [first, first + count) of panels behind one another.
struct BlockRange {
  const std::byte* panel;
  const PanelShape& shape;
  std::int64_t first, count;
};

// Many rows read a panel from far once, for the first of them: the others find it near. Each group of rows
// asks for its share of what comes next, line by line between its blocks.
HONE_INLINE void fetch_line(const std::byte* from) {
  __builtin_prefetch(from, 0, 2);
}

// sums[p * kTileRows + r] [16] of kRows rows and kPanels panels: from zero where the range starts at block 0,
// else what is there is gone on with.
template <int kRows, int kPanels>
HONE_INLINE void load_sums(const BlockRange& range, const float* sums, Vec16 (&acc)[kRows][kPanels]) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p)
      acc[r][p] = range.first == 0 ? zero16() : load(sums + (std::int64_t{p} * kTileRows + r) * 16);
  }
}
template <int kRows, int kPanels>
HONE_INLINE void store_sums(const Vec16 (&acc)[kRows][kPanels], float* sums) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) store(sums + (std::int64_t{p} * kTileRows + r) * 16, acc[r][p]);
  }
}

// x is at the range's first block (x_stride blocks from row to row).
template <DType kWeight, int kRows, int kPanels>
static void add_packed(const BlockQ8A* x, std::int64_t x_stride, const BlockRange& range, std::int64_t group,
                       float* sums) {
  constexpr std::int64_t kBlocks = DotFormat<kWeight>::kBlocks;
  constexpr std::int64_t kLinesOfAll = kPanels * kStoredBytes<kWeight> / 64;
  constexpr std::int64_t kGroups = kTileRows / kDotRows;
  constexpr std::int64_t kLines = kLinesOfAll < kGroups ? 1 : kLinesOfAll / kGroups;
  const std::byte* next = range.panel + kPanels * range.shape.bytes + group * range.count * kLines * 64;
  Vec16 acc[kRows][kPanels];
  load_sums<kRows, kPanels>(range, sums, acc);
  for (std::int64_t done = 0; done < range.count; done += kBlocks) {
    const std::int64_t s = (range.first + done) / kBlocks;
    DotScales<kWeight> scales[kPanels];
    const Vec16* scale[kPanels];
    const Vec16* minimum[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      read_scales<kWeight>(range.panel + p * range.shape.bytes, range.shape, s, scales[p]);
      scale[p] = scales[p].scale;
      minimum[p] = scales[p].minimum;
    }
    const std::byte* stored = dot_blocks_at<kWeight>(range.panel, range.shape, s);
    if constexpr (kRows <= kRowsOfOneStream) {
      for (int p = 0; p < kPanels; ++p) {
        const std::byte* ahead = stored + p * range.shape.bytes + kAhead<kWeight>;
        for (std::int64_t i = 0; i < kStoredBytes<kWeight>; i += 64) __builtin_prefetch(ahead + i);
      }
    }
    if (kRows == kDotRows && group < kLinesOfAll) {
      for (std::int64_t i = 0; i < kLines; ++i) fetch_line(next + (done * kLines + i) * 64);
    }
    for (std::int64_t index = 0; index < kBlocks; ++index) {
      add_block<kWeight, false, kRows, kPanels>(x + done + index, x_stride, stored, range.shape.bytes, index,
                                                scale, minimum, acc);
    }
  }
  store_sums<kRows, kPanels>(acc, sums);
}

template <DType kWeight, int kRows, int kPanels>
static void add_unpacked(const BlockQ8A* x, std::int64_t x_stride, const BlockRange& range,
                         const UnpackedBlocks<kWeight> (&blocks)[kPanels], std::int64_t group, float* sums) {
  Vec16 acc[kRows][kPanels];
  load_sums<kRows, kPanels>(range, sums, acc);
  const Vec16* scale[kPanels];
  const Vec16* minimum[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    scale[p] = blocks[p].scale;
    minimum[p] = blocks[p].minimum;
  }
  constexpr std::int64_t kBlocks = DotFormat<kWeight>::kBlocks;
  const std::byte* next =
      dot_blocks_at<kWeight>(range.panel, range.shape, (range.first + range.count) / kBlocks);
  const std::int64_t lines = range.count / kBlocks * kStoredBytes<kWeight> / 64;
  for (std::int64_t index = 0; index < range.count; ++index) {
    const std::int64_t line = group * range.count + index;
    if (kRows == kDotRows && line < lines) {
      for (int p = 0; p < kPanels; ++p) fetch_line(next + p * range.shape.bytes + line * 64);
    }
    add_block<kWeight, true, kRows, kPanels>(x + index, x_stride, blocks[0].numbers,
                                             sizeof(UnpackedBlocks<kWeight>), index, scale, minimum, acc);
  }
  store_sums<kRows, kPanels>(acc, sums);
}

// Cuts `rows` rows into what the inner loops take: add.operator()<count>(first row).
template <class Add>
HONE_INLINE void for_dot_rows(int rows, const Add& add) {
  std::int64_t r = 0;
  for (; r + kDotRows <= rows; r += kDotRows) add.template operator()<kDotRows>(r);
  for (; r + 2 <= rows; r += 2) add.template operator()<2>(r);
  if (r < rows) add.template operator()<1>(r);
}

// Formats whose numbers lie scattered are unpacked once for all rows of the tile.
template <DType kWeight, int kPanels>
static void add_range(const BlockQ8A* x, std::int64_t x_stride, const BlockRange& range, int rows,
                      float* sums) {
  if constexpr (DotFormat<kWeight>::kWords) {
    UnpackedBlocks<kWeight> blocks[kPanels];
    for (int p = 0; p < kPanels; ++p)
      unpack_blocks(range.panel + p * range.shape.bytes, range.shape, range.first, range.count, blocks[p]);
    for_dot_rows(rows, [&]<int kRows>(std::int64_t r) {
      add_unpacked<kWeight, kRows, kPanels>(x + r * x_stride, x_stride, range, blocks, r / kDotRows,
                                            sums + r * 16);
    });
  } else {
    for_dot_rows(rows, [&]<int kRows>(std::int64_t r) {
      add_packed<kWeight, kRows, kPanels>(x + r * x_stride, x_stride, range, r / kDotRows, sums + r * 16);
    });
  }
}

template <DType kWeight, int kPanels>
static void matmul_panels_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                               const PanelShape& shape, std::int64_t blocks, int rows, float* sums) {
  const std::int64_t step = DotFormat<kWeight>::kWords ? kUnpackedBlocks : blocks;
  std::int64_t first = 0;
  do {  // once with no blocks at all: the sums are zero then
    const std::int64_t count = blocks - first < step ? blocks - first : step;
    add_range<kWeight, kPanels>(x + first, x_stride, {panel, shape, first, count}, rows, sums);
    first += step;
  } while (first < blocks);
}

// The sums of `rows` <= kTileRows rows of x (x_stride blocks apart) with `panels` panels behind one another:
// sums [panels,kTileRows,16].
template <DType kWeight>
static void matmul_tile_int8(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                             std::int64_t k_count, int rows, std::int64_t panels, float* sums) {
  const PanelShape shape = panel_shape(kWeight, k_count);
  const std::int64_t blocks = k_count / 32;
  if (rows <= kRowsOfOneStream) {
    for (std::int64_t p = 0; p < panels; ++p) {
      const BlockRange range = {panel + p * shape.bytes, shape, 0, blocks};
      float* to = sums + p * kTileRows * 16;
      if (rows == 1) add_packed<kWeight, 1, 1>(x, x_stride, range, 0, to);
      if (rows == 2) add_packed<kWeight, 2, 1>(x, x_stride, range, 0, to);
    }
    return;
  }
  std::int64_t p = 0;
  for (; p + kDotPanels <= panels; p += kDotPanels)
    matmul_panels_int8<kWeight, kDotPanels>(x, x_stride, panel + p * shape.bytes, shape, blocks, rows,
                                            sums + p * kTileRows * 16);
  for (; p < panels; ++p)
    matmul_panels_int8<kWeight, 1>(x, x_stride, panel + p * shape.bytes, shape, blocks, rows,
                                   sums + p * kTileRows * 16);
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
