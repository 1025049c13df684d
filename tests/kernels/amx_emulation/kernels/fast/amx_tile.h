// Stands in for src/kernels/fast/amx_tile.h: the same functions, with tiles that are arrays, as Intel's
// manual (volume 2, the operation of each instruction) defines them. An access outside of what is configured
// ends the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <xmmintrin.h>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

struct TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

struct EmulatedTiles {
  TileConfig config;
  bool configured = false;
  std::byte data[8][16][64] = {};
};
static inline thread_local EmulatedTiles emulated_tiles;

static inline int emulated_rows(int tile) {
  if (!emulated_tiles.configured || emulated_tiles.config.rows[tile] == 0) std::abort();
  return emulated_tiles.config.rows[tile];
}
static inline std::size_t emulated_row_bytes(int tile) {
  return emulated_tiles.config.row_bytes[tile];
}

static inline void load_tile_config(const TileConfig& config) {
  for (int tile = 0; tile < 8; ++tile) {
    if (config.rows[tile] > 16 || config.row_bytes[tile] > 64) std::abort();
  }
  emulated_tiles = {config, config.palette == 1, {}};
}
static inline void release_tiles() {
  emulated_tiles.configured = false;
}
template <int kTile>
static void load_tile(const void* from, std::int64_t stride) {
  std::memset(emulated_tiles.data[kTile], 0, sizeof(emulated_tiles.data[kTile]));
  for (int r = 0; r < emulated_rows(kTile); ++r)
    std::memcpy(emulated_tiles.data[kTile][r], static_cast<const std::byte*>(from) + r * stride,
                emulated_row_bytes(kTile));
}
template <int kTile>
static void store_tile_rows(void* to, std::int64_t stride) {
  for (int r = 0; r < emulated_rows(kTile); ++r)
    std::memcpy(static_cast<std::byte*>(to) + r * stride, emulated_tiles.data[kTile][r],
                emulated_row_bytes(kTile));
}
template <int kTile>
static void zero_tile() {
  std::memset(emulated_tiles.data[kTile], 0, sizeof(emulated_tiles.data[kTile]));
}

HONE_INLINE float emulated_bf16(const std::byte* from) {
  std::uint16_t half;
  std::memcpy(&half, from, 2);
  const std::uint32_t bits = static_cast<std::uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

template <int kSum, int kLeft, int kRight>
[[gnu::noinline]] static void emulated_products_bf16() {
  const std::size_t pairs = emulated_row_bytes(kLeft) / 4;
  for (int m = 0; m < emulated_rows(kSum); ++m) {
    for (std::size_t n = 0; n < emulated_row_bytes(kSum) / 4; ++n) {
      float chains[2] = {0, 0};
      for (std::size_t pair = 0; pair < pairs; ++pair) {
        for (std::size_t i = 0; i < 2; ++i) {
          chains[i] =
              __builtin_fmaf(emulated_bf16(&emulated_tiles.data[kLeft][m][pair * 4 + i * 2]),
                             emulated_bf16(&emulated_tiles.data[kRight][pair][n * 4 + i * 2]), chains[i]);
        }
      }
      float sum;
      std::memcpy(&sum, &emulated_tiles.data[kSum][m][n * 4], 4);
      sum += chains[0] + chains[1];
      std::memcpy(&emulated_tiles.data[kSum][m][n * 4], &sum, 4);
    }
  }
}
// Subnormals are 0, whatever the thread has set.
template <int kSum, int kLeft, int kRight>
static void add_products_bf16() {
  if (emulated_row_bytes(kLeft) / 4 != static_cast<std::size_t>(emulated_rows(kRight)) ||
      emulated_row_bytes(kRight) != emulated_row_bytes(kSum) || emulated_rows(kLeft) != emulated_rows(kSum))
    std::abort();
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040U);
  emulated_products_bf16<kSum, kLeft, kRight>();
  _mm_setcsr(before);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
