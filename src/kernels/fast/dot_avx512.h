// Integer dots with VPDPBUSD: per lane, four products of an unsigned and a signed byte added to 32 bits,
// exact. The contract is in dot.h.
//
// Six rows of two panels are 12 chains of dots, where a latency of 4 to 5 times two of them a cycle asks for
// 10, and with as many f32 sums fill 24 registers. A step loads two vectors of weights and six groups of x
// for twelve dots. Measured on Zen 5 (two loads and two dots a cycle), with q8_0: 12 x 1 rows and panels 67 %
// of the peak, 6 x 2 78 %, 4 x 3 78 %, 3 x 4 71 %; 80 % is the most that one product and one fma after each
// eight dots leave, for they take the dots' two ports.
#pragma once

#include <immintrin.h>

#include "kernels/fast/dot_format.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 6;
inline constexpr int kDotPanels = 2;

HONE_INLINE __m512i broadcast_group(const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return _mm512_set1_epi32(four);
}

// kZero times the sum of a row's 32 quants, taken out in advance.
template <int kZero>
HONE_INLINE Vec16i first_sum(const BlockQ8A& block) {
  if constexpr (kZero == 0) return broadcast_i(0);
  const Vec16i offset = broadcast_i(block.offset);
  if constexpr (kZero == 128) return offset;
  if constexpr (kZero == 16) return shift_right<3>(offset);
  return shift_right<4>(offset);
}

// Unsigned numbers, signed x.
template <DType kWeight, int kRows, int kPanels>
HONE_INLINE void dot_unsigned(const std::byte* blocks, std::int64_t panel_bytes, std::int64_t index,
                              const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
    const Vec16i first = first_sum<DotFormat<kWeight>::kZero>(x[r * stride]);
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[r][p] = first;
  }
#pragma GCC unroll 8
  for (std::int64_t g = 0; g < 8; ++g) {
    Vec16i w[kPanels];
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) w[p] = dot_group<kWeight>(blocks + p * panel_bytes, index, g);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const __m512i group = broadcast_group(x[r * stride].quants + g * 4);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) out[r][p].v = _mm512_dpbusd_epi32(out[r][p].v, w[p].v, group);
    }
  }
}

// Signed numbers, of which x + 128 is the unsigned side: 128 times the sum of the numbers is one more dot for
// all rows.
template <DType kWeight, int kRows, int kPanels>
HONE_INLINE void dot_signed(const std::byte* blocks, std::int64_t panel_bytes, std::int64_t index, int part,
                            const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
  const __m512i top = _mm512_set1_epi8(-128);
  Vec16i excess[kPanels];
#pragma GCC unroll 16
  for (int p = 0; p < kPanels; ++p) {
    excess[p] = broadcast_i(0);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) out[r][p] = broadcast_i(0);
  }
  constexpr std::int64_t kGroups = 8 / DotFormat<kWeight>::kParts;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < kGroups; ++i) {
    const std::int64_t g = part * kGroups + i;
    Vec16i w[kPanels];
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) {
      w[p] = dot_group<kWeight>(blocks + p * panel_bytes, index, g);
      excess[p].v = _mm512_dpbusd_epi32(excess[p].v, top, w[p].v);
    }
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const __m512i group = _mm512_xor_si512(broadcast_group(x[r * stride].quants + g * 4), top);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) out[r][p].v = _mm512_dpbusd_epi32(out[r][p].v, group, w[p].v);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[r][p] = sub_i(out[r][p], excess[p]);
  }
}

template <DType kWeight, int kRows, int kPanels>
HONE_INLINE void dot_part(const std::byte* blocks, std::int64_t panel_bytes, std::int64_t index, int part,
                          const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
  if constexpr (DotFormat<kWeight>::kParts == 1) {
    dot_unsigned<kWeight, kRows, kPanels>(blocks, panel_bytes, index, x, stride, out);
  } else {
    dot_signed<kWeight, kRows, kPanels>(blocks, panel_bytes, index, part, x, stride, out);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
