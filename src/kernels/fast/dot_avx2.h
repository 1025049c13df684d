// Integer dots with VPMADDUBSW: products of an unsigned and a signed byte, pairs added to 16 bits with
// saturation. No sum here can saturate, so all are exact. The contract is in dot.h.
#pragma once

#include <immintrin.h>

#include "kernels/fast/vec16.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 6;

HONE_INLINE __m256i broadcast_group(const std::int8_t* x) {
  std::int32_t four;
  __builtin_memcpy(&four, x, 4);
  return _mm256_set1_epi32(four);
}

// Ends a step of the sums. Left alone, the compilers collect the additions of all steps at the end and keep
// what one half of the panel has loaded for the other; both need more registers than there are, and the
// spills cost more than half of the speed.
template <int kRows>
HONE_INLINE void end_step(__m256i* sums) {
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) asm volatile("" : "+x"(sums[r]));
  asm volatile("" : : : "memory");
}

// Eight columns with kRows rows. |w| <= 128 and |x| <= 127 as unsigned and signed byte: a pair is at most
// 2 * 128 * 127 = 32512, below 32767. The sign of w moves to x, which has no -128 and so can be negated.
template <int kRows>
HONE_INLINE void dot_half_8(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                            __m256i* out) {
  const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (std::int64_t g = 0; g < 8; ++g) {
    const __m256i stored = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quants + g * 64));
    const __m256i w = _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
    const __m256i magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const __m256i signed_x = _mm256_sign_epi8(broadcast_group(x[r * stride].quants + g * 4), w);
      const __m256i four = _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, signed_x), ones);
      out[r] = g == 0 ? four : _mm256_add_epi32(out[r], four);
    }
    end_step<kRows>(out);
  }
}

// A pair is at most 2 * 15 * 127 = 3810 and eight of them are 30480: eight groups are added in 16 bits.
template <int kRows, bool kCentred>
HONE_INLINE void dot_half_4(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                            __m256i* out) {
  const __m256i nibble = _mm256_set1_epi8(0x0f);
#pragma GCC unroll 4
  for (std::int64_t g = 0; g < 4; ++g) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quants + g * 64));
    const __m256i low = _mm256_and_si256(both, nibble);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int8_t* row = x[r * stride].quants;
      const __m256i first = _mm256_maddubs_epi16(low, broadcast_group(row + g * 4));
      const __m256i second = _mm256_maddubs_epi16(high, broadcast_group(row + (g + 4) * 4));
      out[r] = g == 0 ? _mm256_add_epi16(first, second)
                      : _mm256_add_epi16(_mm256_add_epi16(out[r], first), second);
    }
    end_step<kRows>(out);
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
    out[r] = _mm256_madd_epi16(out[r], _mm256_set1_epi16(1));
    if constexpr (kCentred) out[r] = _mm256_sub_epi32(out[r], _mm256_set1_epi32(8 * x[r * stride].quant_sum));
  }
}

template <int kRows>
HONE_INLINE void dot_block_8(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
  __m256i low[kRows];
  __m256i high[kRows];
  dot_half_8<kRows>(quants, x, stride, low);
  dot_half_8<kRows>(quants + 32, x, stride, high);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) out[r] = {low[r], high[r]};
}

template <int kRows, bool kCentred>
HONE_INLINE void dot_block_4(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
  __m256i low[kRows];
  __m256i high[kRows];
  dot_half_4<kRows, kCentred>(quants, x, stride, low);
  dot_half_4<kRows, kCentred>(quants + 32, x, stride, high);
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) out[r] = {low[r], high[r]};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
