// Integer dots with VPMADDUBSW: products of an unsigned and a signed byte, pairs added to 16 bits with
// saturation. No sum here can saturate, so all are exact. The contract is in dot.h.
#pragma once

#include <immintrin.h>

#include "kernels/fast/dot_format.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 6;
inline constexpr int kDotPanels = 1;

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
    if constexpr (kCentred) out[r] = _mm256_add_epi32(out[r], _mm256_set1_epi32(x[r * stride].offset / 16));
  }
}

HONE_INLINE __m256i half_of(Vec16i a, bool high) {
  return high ? a.high : a.low;
}

// Formats of five and six bits: a pair is at most 2 * 31 * 127 = 7874 and four of them are 31496, or
// 2 * 63 * 127 = 16002 and two of them 32004: so many groups are added in 16 bits.
template <DType kWeight, bool kUnpacked, int kRows, bool kHigh>
HONE_INLINE void dot_half(const std::byte* blocks, std::int64_t index, int part, const BlockQ8A* x,
                          std::int64_t stride, __m256i* out) {
  using Format = DotFormat<kWeight>;
  constexpr std::int64_t kGroups = 8 / Format::kParts;
  constexpr std::int64_t kAdded = kWeight == DType::Q6_K ? 2 : 4;
#pragma GCC unroll 2
  for (std::int64_t added = 0; added < kGroups; added += kAdded) {
    __m256i pairs[kRows];
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < kAdded; ++i) {
      const std::int64_t g = part * kGroups + added + i;
      const __m256i w = half_of(numbers_of<kWeight, kUnpacked>(blocks, index, g), kHigh);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < kRows; ++r) {
        const __m256i products = _mm256_maddubs_epi16(w, broadcast_group(x[r * stride].quants + g * 4));
        pairs[r] = i == 0 ? products : _mm256_add_epi16(pairs[r], products);
      }
      end_step<kRows>(pairs);
    }
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const __m256i sums = _mm256_madd_epi16(pairs[r], _mm256_set1_epi16(1));
      out[r] = added == 0 ? sums : _mm256_add_epi32(out[r], sums);
    }
  }
  if constexpr (Format::kZero != 0) {
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::int32_t offset = x[r * stride].offset;
      if constexpr (Format::kParts == 2) {
        const std::int32_t first = x[r * stride].first_offset;
        offset = part == 0 ? first : offset - first;
      }
      out[r] = _mm256_add_epi32(out[r], _mm256_set1_epi32(offset / (128 / Format::kZero)));
    }
  }
}

template <DType kWeight, bool kUnpacked, int kRows, int kPanels>
HONE_INLINE void dot_part(const std::byte* blocks, std::int64_t, std::int64_t index, int part,
                          const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
  static_assert(kPanels == 1);
  __m256i low[kRows];
  __m256i high[kRows];
  const auto* quants = reinterpret_cast<const std::uint8_t*>(blocks);
  if constexpr (kWeight == DType::Q8_0) {
    dot_half_8<kRows>(quants, x, stride, low);
    dot_half_8<kRows>(quants + 32, x, stride, high);
  } else if constexpr (kWeight == DType::Q4_0 || kWeight == DType::Q4_1) {
    dot_half_4<kRows, kWeight == DType::Q4_0>(quants, x, stride, low);
    dot_half_4<kRows, kWeight == DType::Q4_0>(quants + 32, x, stride, high);
  } else {
    dot_half<kWeight, kUnpacked, kRows, false>(blocks, index, part, x, stride, low);
    dot_half<kWeight, kUnpacked, kRows, true>(blocks, index, part, x, stride, high);
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) out[r][0] = {low[r], high[r]};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
