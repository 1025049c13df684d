// store_transposed (fast/transpose.h) in registers of sixteen lanes: 64 shuffles and no memory between.
#pragma once

#include <cstdint>
#include <immintrin.h>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Four rows: afterwards row c holds column 4q + c of all four in its quarter q.
HONE_INLINE void transpose_quarters(__m512& a, __m512& b, __m512& c, __m512& d) {
  const auto pairs = [](__m512 low, __m512 high) { return _mm512_castps_pd(_mm512_unpacklo_ps(low, high)); };
  const auto upper_pairs = [](__m512 low, __m512 high) {
    return _mm512_castps_pd(_mm512_unpackhi_ps(low, high));
  };
  const __m512d ab = pairs(a, b);
  const __m512d cd = pairs(c, d);
  const __m512d ab_upper = upper_pairs(a, b);
  const __m512d cd_upper = upper_pairs(c, d);
  a = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
  b = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
  c = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_upper, cd_upper));
  d = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_upper, cd_upper));
}

HONE_INLINE void store_transposed(const Vec16 (&rows)[16], float* out, std::int64_t stride) {
  __m512 r[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = rows[i].v;
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) transpose_quarters(r[i], r[i + 1], r[i + 2], r[i + 3]);
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    // 0x88 takes the quarters 0 and 2 of each operand, 0xdd 1 and 3.
    const __m512 even = _mm512_shuffle_f32x4(r[c], r[4 + c], 0x88);
    const __m512 odd = _mm512_shuffle_f32x4(r[c], r[4 + c], 0xdd);
    const __m512 even_below = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0x88);
    const __m512 odd_below = _mm512_shuffle_f32x4(r[8 + c], r[12 + c], 0xdd);
    store(out + c * stride, {_mm512_shuffle_f32x4(even, even_below, 0x88)});
    store(out + (4 + c) * stride, {_mm512_shuffle_f32x4(odd, odd_below, 0x88)});
    store(out + (8 + c) * stride, {_mm512_shuffle_f32x4(even, even_below, 0xdd)});
    store(out + (12 + c) * stride, {_mm512_shuffle_f32x4(odd, odd_below, 0xdd)});
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
