// x bf16 times panels of bf16 weights.
//
// The order of additions of every output, on every ISA level and for every count of rows and panels: blocks
// of 32 values of k in order, acc from 0; within a block one chain of fused multiply-adds over the even k and
// one over the odd k, each from 0, then
//   acc = acc + (even + odd)
// with subnormal operands and results taken as 0. That is what one TDPBF16PS does (fast/amx_tile.h), so that
// tiles need not be used where there are few rows, nor where there are none. VDPBF16PS adds in another order
// and is not used: most of its results differ in their last bit.
#pragma once

#include <xmmintrin.h>

#include "kernels/fast/bf16_tiles.h"
#include "kernels/fast/list.h"
#include "kernels/fast/matmul_rows.h"
#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Rows and panels of a step: two chains of each.
inline constexpr int kBf16Rows = kThisIsa >= Isa::Avx512 ? 4 : 2;
inline constexpr int kBf16Panels = kThisIsa >= Isa::Avx512 ? 2 : 1;
inline constexpr std::int64_t kBf16Block = 32;
// One or two rows are bound by reading weights: one stream, asked for ahead (fast/matmul_int8.h).
inline constexpr std::int64_t kBf16Ahead = 4096;

// While it lives, subnormals are 0. What computes under it must not be inlined around it.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040U); }
  ~SubnormalsAreZero() { _mm_setcsr(before_); }
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
  unsigned before_;
};

// Two values of k of one row, in the order of memory.
HONE_INLINE Vec16i broadcast_pair(const std::uint16_t* x) {
  std::int32_t pair;
  __builtin_memcpy(&pair, x, 4);
  return broadcast_i(pair);
}

// sums[p * kTileRows + r] of kRows rows and kPanels panels, from 0.
template <int kRows, int kPanels>
static void multiply_bf16(const std::uint16_t* x, std::int64_t x_stride, const std::byte* panel,
                          std::int64_t panel_bytes, std::int64_t k_count, float* sums) {
  Vec16 acc[kRows][kPanels];
#pragma GCC unroll 4
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) acc[r][p] = zero16();
  }
  for (std::int64_t k = 0; k < k_count; k += kBf16Block) {
    Vec16 even[kRows][kPanels];
    Vec16 odd[kRows][kPanels];
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) even[r][p] = odd[r][p] = zero16();
    }
    for (std::int64_t i = 0; i < kBf16Block; i += 2) {
      Vec16 first[kPanels];
      Vec16 second[kPanels];
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        const auto* w = reinterpret_cast<const std::uint16_t*>(panel + p * panel_bytes) + (k + i) * 16;
        if constexpr (kRows <= 2 && kPanels == 1)
          __builtin_prefetch(reinterpret_cast<const std::byte*>(w) + kBf16Ahead);
        first[p] = load_bf16(w);
        second[p] = load_bf16(w + 16);
      }
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < kRows; ++r) {
        const Vec16i pair = broadcast_pair(x + r * x_stride + k + i);
        const Vec16 x_first = from_bits(shift_left<16>(pair));
        const Vec16 x_second = from_bits(and_i(pair, broadcast_i(INT32_MIN >> 15)));
#pragma GCC unroll 2
        for (int p = 0; p < kPanels; ++p) {
          even[r][p] = fma(x_first, first[p], even[r][p]);
          odd[r][p] = fma(x_second, second[p], odd[r][p]);
        }
      }
    }
#pragma GCC unroll 4
    for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) acc[r][p] = add(acc[r][p], add(even[r][p], odd[r][p]));
    }
  }
#pragma GCC unroll 4
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) store(sums + (std::int64_t{p} * kTileRows + r) * 16, acc[r][p]);
  }
}

template <int kPanels>
static void multiply_bf16_rows(const std::uint16_t* x, std::int64_t x_stride, const std::byte* panel,
                               std::int64_t panel_bytes, std::int64_t k_count, int rows, float* sums) {
  std::int64_t r = 0;
  for (; r + kBf16Rows <= rows; r += kBf16Rows)
    multiply_bf16<kBf16Rows, kPanels>(x + r * x_stride, x_stride, panel, panel_bytes, k_count, sums + r * 16);
  for (; r < rows; ++r)
    multiply_bf16<1, kPanels>(x + r * x_stride, x_stride, panel, panel_bytes, k_count, sums + r * 16);
}

[[gnu::noinline]] static void multiply_bf16_panels(const std::uint16_t* x, std::int64_t x_stride,
                                                   const std::byte* panel, std::int64_t panel_bytes,
                                                   std::int64_t k_count, int rows, std::int64_t panels,
                                                   float* sums) {
  std::int64_t p = 0;
  if (rows <= 2) {
    for (; p < panels; ++p) {
      float* to = sums + p * kTileRows * 16;
      if (rows == 1)
        multiply_bf16<1, 1>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, to);
      else
        multiply_bf16<2, 1>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, to);
    }
    return;
  }
  for (; p + kBf16Panels <= panels; p += kBf16Panels)
    multiply_bf16_rows<kBf16Panels>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, rows,
                                    sums + p * kTileRows * 16);
  for (; p < panels; ++p)
    multiply_bf16_rows<1>(x, x_stride, panel + p * panel_bytes, panel_bytes, k_count, rows,
                          sums + p * kTileRows * 16);
}

// The sums of `rows` <= kTileRows rows of x (x_stride elements apart) with `panels` panels behind one
// another: sums [panels,kTileRows,16]. k_count is a multiple of 32.
static inline void matmul_tile_bf16(const std::uint16_t* x, std::int64_t x_stride, const std::byte* panel,
                                    std::int64_t k_count, int rows, std::int64_t panels, float* sums) {
  const std::int64_t panel_bytes = panel_shape(DType::BF16, k_count).bytes;
  if (rows >= kFewestBf16TileRows && k_count > 0)
    return multiply_bf16_tiles(x, x_stride, panel, panel_bytes, k_count, rows, panels, sums);
  const SubnormalsAreZero flush;
  multiply_bf16_panels(x, x_stride, panel, panel_bytes, k_count, rows, panels, sums);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
