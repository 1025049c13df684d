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

// -kZero times the sum of a part's quants: what an integer offset of the weights has added.
template <int kZero, int kParts>
HONE_INLINE Vec16i first_sum(const BlockQ8A& block, int part) {
  if constexpr (kZero == 0) return broadcast_i(0);
  std::int32_t offset = block.offset;
  if constexpr (kParts == 2) offset = part == 0 ? block.first_offset : offset - block.first_offset;
  if constexpr (kZero == 128) return broadcast_i(offset);
  if constexpr (kZero == 32) return shift_right<2>(broadcast_i(offset));
  if constexpr (kZero == 16) return shift_right<3>(broadcast_i(offset));
  return shift_right<4>(broadcast_i(offset));
}

template <DType kWeight, bool kUnpacked, int kRows, int kPanels>
HONE_INLINE void dot_part(const std::byte* blocks, std::int64_t panel_bytes, std::int64_t index, int part,
                          const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
  using Format = DotFormat<kWeight>;
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
    const Vec16i first = first_sum<Format::kZero, Format::kParts>(x[r * stride], part);
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) out[r][p] = first;
  }
  constexpr std::int64_t kGroups = 8 / Format::kParts;
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kGroups; ++i) {
    const std::int64_t g = part * kGroups + i;
    Vec16i w[kPanels];
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p)
      w[p] = numbers_of<kWeight, kUnpacked>(blocks + p * panel_bytes, index, g);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const __m512i group = broadcast_group(x[r * stride].quants + g * 4);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) out[r][p].v = _mm512_dpbusd_epi32(out[r][p].v, w[p].v, group);
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
