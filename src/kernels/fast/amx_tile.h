// The tile instructions of AMX (Intel's manual, volume 1, chapter 18), as inline assembly.
//
// GCC 12's own tile intrinsics are not used: its _tile_loadconfig declares 8 of the 64 bytes it reads, and
// its _tile_loadd no memory at all, so that stores before them can be dropped. Here each instruction that
// reads or writes memory says so.
//
// Tile registers are per thread and hold nothing between calls: whoever uses them loads a configuration
// first and releases it at the end, so that a thread that is switched out has no tiles to save.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// What ldtilecfg reads: rows of a tile, and bytes of each.
struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

HONE_INLINE void load_tile_config(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
}
HONE_INLINE void release_tiles() {
  asm volatile("tilerelease" : : : "memory");
}

// Row r of the tile from `from` + r * `stride` bytes, and to it.
template <int kTile>
HONE_INLINE void load_tile(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HONE_INLINE void store_tile_rows(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
}
template <int kTile>
HONE_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}

// kSum [m,n] f32 += kLeft [m,k] * kRight [k,n], bf16, two values of k of one n behind one another in a row of
// kRight: per output one chain of fused multiply-adds over the even and one over the odd k, each from zero,
// their sum, added to kSum. Subnormals, of operands and results, are zero.
template <int kSum, int kLeft, int kRight>
HONE_INLINE void add_products_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kLeft), "i"(kRight));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
