// Vec16 on AVX-512 F+BW+DQ+VL: one register of sixteen lanes. The contract is in vec16.h.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace hone::kernels::HONE_ISA_NAMESPACE {

struct Vec16 {
  __m512 v;
};
struct Vec16i {
  __m512i v;
};
struct Mask16 {
  __mmask16 m;
};

// Rows and panels of an f32 micro-kernel whose accumulators the registers hold: of 12 products, 6 x 2 load 8
// vectors where 12 x 1 load 13, and two loads a cycle bound the latter.
inline constexpr int kFloatRows = 6;
inline constexpr int kFloatPanels = 2;

HONE_INLINE Vec16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
HONE_INLINE void store(float* p, Vec16 a) {
  _mm512_storeu_ps(p, a.v);
}
HONE_INLINE Vec16 broadcast(float a) {
  return {_mm512_set1_ps(a)};
}
HONE_INLINE Vec16i broadcast_i(std::int32_t a) {
  return {_mm512_set1_epi32(a)};
}

HONE_INLINE Mask16 first_lanes(int count) {
  return {static_cast<__mmask16>((1U << count) - 1U)};
}
HONE_INLINE Vec16 load_partial(const float* p, int count) {
  return {_mm512_maskz_loadu_ps(first_lanes(count).m, p)};
}
HONE_INLINE void store_partial(float* p, Vec16 a, int count) {
  _mm512_mask_storeu_ps(p, first_lanes(count).m, a.v);
}

HONE_INLINE Vec16 add(Vec16 a, Vec16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
HONE_INLINE Vec16 sub(Vec16 a, Vec16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
HONE_INLINE Vec16 mul(Vec16 a, Vec16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
HONE_INLINE Vec16 div(Vec16 a, Vec16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
HONE_INLINE Vec16 min(Vec16 a, Vec16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
HONE_INLINE Vec16 max(Vec16 a, Vec16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
HONE_INLINE Vec16 sqrt(Vec16 a) {
  return {_mm512_sqrt_ps(a.v)};
}
// a * b + c
HONE_INLINE Vec16 fma(Vec16 a, Vec16 b, Vec16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}

HONE_INLINE Vec16i bits_of(Vec16 a) {
  return {_mm512_castps_si512(a.v)};
}
HONE_INLINE Vec16 from_bits(Vec16i a) {
  return {_mm512_castsi512_ps(a.v)};
}
HONE_INLINE Vec16 to_f32(Vec16i a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
HONE_INLINE Vec16i to_i32(Vec16 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
HONE_INLINE Vec16i to_i32_truncate(Vec16 a) {
  return {_mm512_cvttps_epi32(a.v)};
}

HONE_INLINE Vec16i load_i(const std::int32_t* p) {
  return {_mm512_loadu_si512(p)};
}
HONE_INLINE void store_i(std::int32_t* p, Vec16i a) {
  _mm512_storeu_si512(p, a.v);
}
HONE_INLINE Vec16i load_i_partial(const std::int32_t* p, int count) {
  return {_mm512_maskz_loadu_epi32(first_lanes(count).m, p)};
}
HONE_INLINE void store_i_partial(std::int32_t* p, Vec16i a, int count) {
  _mm512_mask_storeu_epi32(p, first_lanes(count).m, a.v);
}
HONE_INLINE Vec16i add_i(Vec16i a, Vec16i b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
HONE_INLINE Vec16i sub_i(Vec16i a, Vec16i b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
HONE_INLINE Vec16i and_i(Vec16i a, Vec16i b) {
  return {_mm512_and_si512(a.v, b.v)};
}
HONE_INLINE Vec16i or_i(Vec16i a, Vec16i b) {
  return {_mm512_or_si512(a.v, b.v)};
}
HONE_INLINE Vec16i xor_i(Vec16i a, Vec16i b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
template <int kBits>
HONE_INLINE Vec16i shift_left(Vec16i a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
HONE_INLINE Vec16i shift_right_logical(Vec16i a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
// The same with a count known at run time.
HONE_INLINE Vec16i shift_right_by(Vec16i a, std::int64_t bits) {
  return {_mm512_srl_epi32(a.v, _mm_cvtsi64_si128(bits))};
}
template <int kBits>
HONE_INLINE Vec16i shift_right(Vec16i a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}

HONE_INLINE Mask16 less(Vec16 a, Vec16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
HONE_INLINE Mask16 less_equal(Vec16 a, Vec16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
HONE_INLINE Mask16 equal(Vec16 a, Vec16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
HONE_INLINE Mask16 less_i(Vec16i a, Vec16i b) {
  return {_mm512_cmplt_epi32_mask(a.v, b.v)};
}
HONE_INLINE Mask16 equal_i(Vec16i a, Vec16i b) {
  return {_mm512_cmpeq_epi32_mask(a.v, b.v)};
}
HONE_INLINE Mask16 mask_and(Mask16 a, Mask16 b) {
  return {_kand_mask16(a.m, b.m)};
}
HONE_INLINE Mask16 mask_or(Mask16 a, Mask16 b) {
  return {_kor_mask16(a.m, b.m)};
}
HONE_INLINE Mask16 mask_not(Mask16 a) {
  return {_knot_mask16(a.m)};
}
// Bit i is lane i.
HONE_INLINE std::uint32_t mask_bits(Mask16 a) {
  return a.m;
}
// mask ? a : b
HONE_INLINE Vec16 select(Mask16 m, Vec16 a, Vec16 b) {
  return {_mm512_mask_blend_ps(m.m, b.v, a.v)};
}
HONE_INLINE Vec16i select_i(Mask16 m, Vec16i a, Vec16i b) {
  return {_mm512_mask_blend_epi32(m.m, b.v, a.v)};
}

// 16-bit and 8-bit memory to and from 32-bit lanes. Stores keep the low bits of each lane.
HONE_INLINE Vec16i load_u16(const std::uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
HONE_INLINE void store_u16(std::uint16_t* p, Vec16i a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
HONE_INLINE Vec16i load_u16_partial(const std::uint16_t* p, int count) {
  return {_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(count).m, p))};
}
HONE_INLINE void store_u16_partial(std::uint16_t* p, Vec16i a, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count).m, _mm512_cvtepi32_epi16(a.v));
}
HONE_INLINE Vec16i load_i8(const std::int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
HONE_INLINE void store_i8(std::int8_t* p, Vec16i a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

HONE_INLINE Vec16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
HONE_INLINE void store_f16(std::uint16_t* p, Vec16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
// One f16, at any address, in every lane.
HONE_INLINE Vec16 broadcast_f16(const void* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, 2);
  return {_mm512_cvtph_ps(_mm256_set1_epi16(static_cast<short>(bits)))};
}
HONE_INLINE Vec16 load_f16_partial(const std::uint16_t* p, int count) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count).m, p))};
}
HONE_INLINE void store_f16_partial(std::uint16_t* p, Vec16 a, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count).m, _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}

HONE_INLINE float sum(Vec16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
HONE_INLINE float max_lane(Vec16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
