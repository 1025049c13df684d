// The products of q8a of fast/matmul_int8.h in AMX tiles, 16 rows by one panel of 16 columns: the integer dots
// of one part of one block are one TDPBSSD, exact as those of the vector kernels, and what follows them is
// the same, so the bits are.
//
// The scales of the blocks allow no sum in the tiles beyond one block. So every product of tiles is stored
// and read again, which bounds this kernel.
#pragma once

#include "kernels/fast/amx_tile.h"
#include "kernels/fast/dot_format.h"
#include "kernels/fast/matmul_rows.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kRowsOfTile = 16;

// Fewer rows than a tile, and those behind the last whole tile, are left to the vectors.
HONE_INLINE int tiled_rows(int rows) {
  return rows / kRowsOfTile * kRowsOfTile;
}

// Blocks of one panel as signed bytes, number - kZero. A part of a block is a tile of 8 groups of k: where it
// is half a block, the other groups are zero, so that every part has the whole block of x as its left side.
template <DType kWeight>
struct TileBlocks {
  alignas(64) std::byte numbers[kUnpackedBlocks * DotFormat<kWeight>::kParts * 512];
  Vec16 scale[kUnpackedBlocks * DotFormat<kWeight>::kParts];
  Vec16 minimum[kUnpackedBlocks];
};

template <DType kWeight>
HONE_INLINE void unpack_tiles(const std::byte* panel, const PanelShape& shape, std::int64_t first,
                              std::int64_t count, TileBlocks<kWeight>& out) {
  using Format = DotFormat<kWeight>;
  constexpr std::int64_t kParts = Format::kParts;
  auto* numbers = reinterpret_cast<std::int32_t*>(out.numbers);
  for (std::int64_t done = 0; done < count; done += Format::kBlocks) {
    const std::int64_t s = (first + done) / Format::kBlocks;
    DotScales<kWeight> scales;
    read_scales<kWeight>(panel, shape, s, scales);
    for (std::int64_t i = 0; i < Format::kBlocks * kParts; ++i)
      out.scale[done * kParts + i] = scales.scale[i];
    const std::byte* blocks = dot_blocks_at<kWeight>(panel, shape, s);
    for (std::int64_t index = 0; index < Format::kBlocks; ++index) {
      if constexpr (Format::kMinimum) out.minimum[done + index] = scales.minimum[index];
#pragma GCC unroll 8
      for (std::int64_t g = 0; g < 8; ++g) {
        const Vec16i group = sub_bytes(dot_group<kWeight>(blocks, index, g), Format::kZero);
        const std::int64_t part = g * kParts / 8;
#pragma GCC unroll 2
        for (std::int64_t i = 0; i < kParts; ++i)
          store_i(numbers + (((done + index) * kParts + i) * 8 + g) * 16, i == part ? group : broadcast_i(0));
      }
    }
  }
}

// Tiles 0 to 3 are sums, one of each part in turn; 4 and 5 hold x, 6 and 7 weights.
HONE_INLINE TileConfig int8_tiles() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = tile < 6 ? kRowsOfTile : 8;
    config.row_bytes[tile] = tile == 4 || tile == 5 ? 32 : 64;
  }
  return config;
}

// Part `index` (counted through the blocks) of 16 rows into tile `kSum`.
template <int kSum, int kParts>
HONE_INLINE void multiply_part(const BlockQ8A* x, std::int64_t row_bytes, const std::byte* numbers,
                               std::int64_t index) {
  load_tile<4 + kSum % 2>(x[index / kParts].quants, row_bytes);
  load_tile<6 + kSum % 2>(numbers + index * 512, 64);
  zero_tile<kSum>();
  add_products_i8<kSum, 4 + kSum % 2, 6 + kSum % 2>();
}

// What matmul_int8.h does with the dots of a part.
template <DType kWeight>
HONE_INLINE void add_part(const std::int32_t* dots, const BlockQ8A* x, std::int64_t x_stride,
                          const TileBlocks<kWeight>& blocks, std::int64_t index, Vec16 (&acc)[kRowsOfTile]) {
  constexpr std::int64_t kParts = DotFormat<kWeight>::kParts;
  const std::int64_t block = index / kParts;
  const Vec16 scale = blocks.scale[index];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRowsOfTile; ++r) {
    const BlockQ8A& of_row = x[r * x_stride + block];
    acc[r] = fma(to_f32(load_i(dots + r * 16)), mul(scale, broadcast(of_row.scale)), acc[r]);
  }
  if (!DotFormat<kWeight>::kMinimum || index % kParts + 1 < kParts) return;
  const Vec16 minimum = blocks.minimum[block];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRowsOfTile; ++r)
    acc[r] = fma(minimum, broadcast(x[r * x_stride + block].sum), acc[r]);
}

// 16 rows with the `count` blocks of `blocks`: sums [16,16] are gone on with, or begun. A product is four
// parts ahead of its sums, and stored two parts ahead: by then it is done.
template <DType kWeight>
static void add_blocks_in_tiles(const BlockQ8A* x, std::int64_t x_stride, const TileBlocks<kWeight>& blocks,
                                std::int64_t count, bool first, float* sums) {
  constexpr int kParts = DotFormat<kWeight>::kParts;
  const std::int64_t parts = count * kParts;
  const std::int64_t row_bytes = x_stride * std::int64_t{sizeof(BlockQ8A)};
  alignas(64) std::int32_t dots[4][256];
  Vec16 acc[kRowsOfTile];
  const auto multiply = [&]<int kSum>(std::int64_t index) {
    if (index < parts) multiply_part<kSum, kParts>(x, row_bytes, blocks.numbers, index);
  };
  const auto put = [&]<int kSum>(std::int64_t index) {
    if (index < parts) store_tile_rows<kSum>(dots[kSum], 64);
  };
  const auto step = [&]<int kSum>(std::int64_t index) {
    if (index >= parts) return;
    multiply.template operator()<kSum>(index + 4);
    put.template operator()<(kSum + 2) % 4>(index + 2);
    add_part<kWeight>(dots[kSum], x, x_stride, blocks, index, acc);
  };
  multiply.template operator()<0>(0);
  multiply.template operator()<1>(1);
  multiply.template operator()<2>(2);
  multiply.template operator()<3>(3);
  put.template operator()<0>(0);
  put.template operator()<1>(1);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRowsOfTile; ++r) acc[r] = first ? zero16() : load(sums + r * 16);
  for (std::int64_t index = 0; index < parts; index += 4) {
    step.template operator()<0>(index);
    step.template operator()<1>(index + 1);
    step.template operator()<2>(index + 2);
    step.template operator()<3>(index + 3);
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRowsOfTile; ++r) store(sums + r * 16, acc[r]);
}

// `rows` rows, a multiple of 16, with `panels` panels behind one another: sums [panels,kTileRows,16]. Some
// blocks of x go by all panels before the next ones: they stay in the cache.
template <DType kWeight>
static void multiply_in_tiles(const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                              const PanelShape& shape, std::int64_t blocks, int rows, std::int64_t panels,
                              float* sums) {
  load_tile_config(int8_tiles());
  std::int64_t first = 0;
  do {  // once with no blocks at all: the sums are zero then
    const std::int64_t count = blocks - first < kUnpackedBlocks ? blocks - first : kUnpackedBlocks;
    for (std::int64_t p = 0; p < panels; ++p) {
      TileBlocks<kWeight> unpacked;
      unpack_tiles(panel + p * shape.bytes, shape, first, count, unpacked);
      for (std::int64_t r = 0; r < rows; r += kRowsOfTile) {
        add_blocks_in_tiles(x + r * x_stride + first, x_stride, unpacked, count, first == 0,
                            sums + (p * kTileRows + r) * 16);
      }
    }
    first += kUnpackedBlocks;
  } while (first < blocks);
  release_tiles();
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
