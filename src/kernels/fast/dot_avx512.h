// Integer dots with VPDPBUSD: per lane, four products of an unsigned and a signed byte added to 32 bits,
// exact. The contract is in dot.h.
#pragma once

#include <immintrin.h>

#include "kernels/fast/vec16.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 12;

HONE_INLINE __m512i broadcast_group(const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return _mm512_set1_epi32(four);
}

template <int kRows>
HONE_INLINE void dot_block_8(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) out[r] = broadcast_i(-128 * x[r * stride].quant_sum);
#pragma GCC unroll 8
  for (std::int64_t g = 0; g < 8; ++g) {
    const __m512i w = _mm512_loadu_si512(quants + g * 64);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      out[r].v = _mm512_dpbusd_epi32(out[r].v, w, broadcast_group(x[r * stride].quants + g * 4));
    }
  }
}

template <int kRows, bool kCentred>
HONE_INLINE void dot_block_4(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
  const __m512i nibble = _mm512_set1_epi8(0x0f);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) out[r] = broadcast_i(kCentred ? -8 * x[r * stride].quant_sum : 0);
#pragma GCC unroll 4
  for (std::int64_t g = 0; g < 4; ++g) {
    const __m512i both = _mm512_loadu_si512(quants + g * 64);
    const __m512i low = _mm512_and_si512(both, nibble);
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int8_t* row = x[r * stride].quants;
      out[r].v = _mm512_dpbusd_epi32(out[r].v, low, broadcast_group(row + g * 4));
      out[r].v = _mm512_dpbusd_epi32(out[r].v, high, broadcast_group(row + (g + 4) * 4));
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
