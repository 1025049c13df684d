// Products of bf16 in AMX tiles: 32 rows by two panels of 16 columns are four tiles of sums, which stay where
// they are for a segment of K. Each step of 32 k loads four tiles for four products. A row of the right side
// of TDPBF16PS holds two k of each column, where a panel has one k a row: segments of panels are interleaved
// once for all rows of the tile.
//
// The registers hold 8 tiles: 2 x 2 sums, two of x, two of weights. Measured (Xeon with AMX, two threads, one
// product of 512 x 4864 x 896): 1 x 1 tiles load twice as much a product and reach half; segments of 448 k
// 1.98, of all 896 k 2.17 TFLOP/s of a peak of 4.6.
#pragma once

#include "kernels/fast/amx_tile.h"
#include "kernels/fast/matmul_rows.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Fewer rows cost the vectors less than interleaving costs the tiles.
inline constexpr int kFewestBf16TileRows = 4;
// Of one panel 32 KiB, of two as much as the cache nearest to the core holds: what is read again and again
// is one segment of one pair.
inline constexpr std::int64_t kBf16Segment = 1024;

// The words of k and k + 1, of each column behind one another.
HONE_INLINE void interleave_pairs(const std::byte* panel, std::int64_t first, std::int64_t count,
                                  std::byte* out) {
  const auto* from = reinterpret_cast<const std::uint16_t*>(panel) + first * 16;
  for (std::int64_t k = 0; k < count; k += 2) {
    const Vec16i low = load_u16(from + k * 16);
    const Vec16i high = shift_left<16>(load_u16(from + k * 16 + 16));
    store_i(reinterpret_cast<std::int32_t*>(out + k * 32), or_i(low, high));
  }
}

// Tiles 0 to 3 are sums: of the first and second panel, then those of the rows behind the first 16. 4 and 5
// hold rows of x, 6 and 7 weights.
HONE_INLINE TileConfig bf16_tiles(int rows) {
  TileConfig config;
  const int first = rows < 16 ? rows : 16;
  const int second = rows - first;
  for (int tile = 0; tile < 8; ++tile) {
    const bool weights = tile >= 6;
    const bool later = tile == 2 || tile == 3 || tile == 5;
    config.rows[tile] = static_cast<std::uint8_t>(weights ? 16 : later ? second : first);
    config.row_bytes[tile] = config.rows[tile] == 0 ? 0 : 64;
  }
  return config;
}

// A segment of up to 32 rows with kPanels panels.
template <int kRowTiles, int kPanels>
HONE_INLINE void add_bf16_segment(const std::uint16_t* x, std::int64_t x_stride, const std::byte* weights,
                                  std::int64_t count, bool first, float* sums) {
  const std::int64_t row_bytes = x_stride * 2;
  float* second = sums + kTileRows * 16;
  if (first) {
    zero_tile<0>();
    if constexpr (kPanels == 2) zero_tile<1>();
    if constexpr (kRowTiles == 2) zero_tile<2>();
    if constexpr (kRowTiles == 2 && kPanels == 2) zero_tile<3>();
  } else {
    load_tile<0>(sums, 64);
    if constexpr (kPanels == 2) load_tile<1>(second, 64);
    if constexpr (kRowTiles == 2) load_tile<2>(sums + 256, 64);
    if constexpr (kRowTiles == 2 && kPanels == 2) load_tile<3>(second + 256, 64);
  }
  for (std::int64_t k = 0; k < count; k += 32) {
    load_tile<4>(x + k, row_bytes);
    load_tile<6>(weights + k * 32, 64);
    add_products_bf16<0, 4, 6>();
    if constexpr (kPanels == 2) {
      load_tile<7>(weights + kBf16Segment * 32 + k * 32, 64);
      add_products_bf16<1, 4, 7>();
    }
    if constexpr (kRowTiles == 2) {
      load_tile<5>(x + 16 * x_stride + k, row_bytes);
      add_products_bf16<2, 5, 6>();
      if constexpr (kPanels == 2) add_products_bf16<3, 5, 7>();
    }
  }
  store_tile_rows<0>(sums, 64);
  if constexpr (kPanels == 2) store_tile_rows<1>(second, 64);
  if constexpr (kRowTiles == 2) store_tile_rows<2>(sums + 256, 64);
  if constexpr (kRowTiles == 2 && kPanels == 2) store_tile_rows<3>(second + 256, 64);
}

// All rows with kPanels panels. The last rows, fewer than 32, have a configuration of their own.
template <int kPanels>
static void multiply_bf16_pair(const std::uint16_t* x, std::int64_t x_stride, const std::byte* panel,
                               std::int64_t panel_bytes, std::int64_t k_count, int rows, float* sums) {
  alignas(64) std::byte weights[2 * kBf16Segment * 32];
  const int whole = rows / 32 * 32;
  const int last = rows - whole;
  if (whole > 0) load_tile_config(bf16_tiles(32));
  for (std::int64_t k = 0; k < k_count; k += kBf16Segment) {
    const std::int64_t count = k_count - k < kBf16Segment ? k_count - k : kBf16Segment;
    for (int p = 0; p < kPanels; ++p)
      interleave_pairs(panel + p * panel_bytes, k, count, weights + p * kBf16Segment * 32);
    for (std::int64_t r = 0; r < whole; r += 32)
      add_bf16_segment<2, kPanels>(x + r * x_stride + k, x_stride, weights, count, k == 0, sums + r * 16);
    if (last == 0) continue;
    load_tile_config(bf16_tiles(last));
    const std::uint16_t* rest = x + whole * x_stride + k;
    if (last > 16)
      add_bf16_segment<2, kPanels>(rest, x_stride, weights, count, k == 0, sums + whole * 16);
    else
      add_bf16_segment<1, kPanels>(rest, x_stride, weights, count, k == 0, sums + whole * 16);
    if (whole > 0 && k + kBf16Segment < k_count) load_tile_config(bf16_tiles(32));
  }
}

static inline void multiply_bf16_tiles(const std::uint16_t* x, std::int64_t x_stride, const std::byte* panel,
                                       std::int64_t panel_bytes, std::int64_t k_count, int rows,
                                       std::int64_t panels, float* sums) {
  std::int64_t p = 0;
  for (; p + 2 <= panels; p += 2)
    multiply_bf16_pair<2>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, rows,
                          sums + p * kTileRows * 16);
  if (p < panels)
    multiply_bf16_pair<1>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, rows,
                          sums + p * kTileRows * 16);
  release_tiles();
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
