// Vec16 on AVX2 + FMA + F16C: two registers of eight lanes. The contract is in vec16.h.
#pragma once

#include <cstdint>
#include <immintrin.h>

namespace hone::kernels::HONE_ISA_NAMESPACE {

struct Vec16 {
  __m256 low, high;
};
struct Vec16i {
  __m256i low, high;
};
struct Mask16 {  // all ones or all zeros in each lane
  __m256 low, high;
};

// Rows and panels of an f32 micro-kernel whose accumulators the registers hold.
inline constexpr int kFloatRows = 6;
inline constexpr int kFloatPanels = 1;

HONE_INLINE Vec16 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
HONE_INLINE void store(float* p, Vec16 a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
HONE_INLINE Vec16 broadcast(float a) {
  return {_mm256_set1_ps(a), _mm256_set1_ps(a)};
}
HONE_INLINE Vec16i broadcast_i(std::int32_t a) {
  return {_mm256_set1_epi32(a), _mm256_set1_epi32(a)};
}

// Lanes i < count, as integers.
HONE_INLINE Vec16i lanes_below(int count) {
  const __m256i n = _mm256_set1_epi32(count);
  return {_mm256_cmpgt_epi32(n, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)),
          _mm256_cmpgt_epi32(n, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15))};
}
HONE_INLINE Mask16 first_lanes(int count) {
  const Vec16i m = lanes_below(count);
  return {_mm256_castsi256_ps(m.low), _mm256_castsi256_ps(m.high)};
}
HONE_INLINE Vec16 load_partial(const float* p, int count) {
  const Vec16i m = lanes_below(count);
  return {_mm256_maskload_ps(p, m.low), _mm256_maskload_ps(p + 8, m.high)};
}
HONE_INLINE void store_partial(float* p, Vec16 a, int count) {
  const Vec16i m = lanes_below(count);
  _mm256_maskstore_ps(p, m.low, a.low);
  _mm256_maskstore_ps(p + 8, m.high, a.high);
}

HONE_INLINE Vec16 add(Vec16 a, Vec16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
HONE_INLINE Vec16 sub(Vec16 a, Vec16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
HONE_INLINE Vec16 mul(Vec16 a, Vec16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
HONE_INLINE Vec16 div(Vec16 a, Vec16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
HONE_INLINE Vec16 min(Vec16 a, Vec16 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
HONE_INLINE Vec16 max(Vec16 a, Vec16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
HONE_INLINE Vec16 sqrt(Vec16 a) {
  return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)};
}
// a * b + c
HONE_INLINE Vec16 fma(Vec16 a, Vec16 b, Vec16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

HONE_INLINE Vec16i bits_of(Vec16 a) {
  return {_mm256_castps_si256(a.low), _mm256_castps_si256(a.high)};
}
HONE_INLINE Vec16 from_bits(Vec16i a) {
  return {_mm256_castsi256_ps(a.low), _mm256_castsi256_ps(a.high)};
}
HONE_INLINE Vec16 to_f32(Vec16i a) {
  return {_mm256_cvtepi32_ps(a.low), _mm256_cvtepi32_ps(a.high)};
}
HONE_INLINE Vec16i to_i32(Vec16 a) {
  return {_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high)};
}
HONE_INLINE Vec16i to_i32_truncate(Vec16 a) {
  return {_mm256_cvttps_epi32(a.low), _mm256_cvttps_epi32(a.high)};
}

HONE_INLINE Vec16i load_i(const std::int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
HONE_INLINE void store_i(std::int32_t* p, Vec16i a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.low);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.high);
}
HONE_INLINE Vec16i load_i_partial(const std::int32_t* p, int count) {
  const Vec16i m = lanes_below(count);
  return {_mm256_maskload_epi32(p, m.low), _mm256_maskload_epi32(p + 8, m.high)};
}
HONE_INLINE void store_i_partial(std::int32_t* p, Vec16i a, int count) {
  const Vec16i m = lanes_below(count);
  _mm256_maskstore_epi32(p, m.low, a.low);
  _mm256_maskstore_epi32(p + 8, m.high, a.high);
}
HONE_INLINE Vec16i add_i(Vec16i a, Vec16i b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
HONE_INLINE Vec16i sub_i(Vec16i a, Vec16i b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}
HONE_INLINE Vec16i and_i(Vec16i a, Vec16i b) {
  return {_mm256_and_si256(a.low, b.low), _mm256_and_si256(a.high, b.high)};
}
HONE_INLINE Vec16i or_i(Vec16i a, Vec16i b) {
  return {_mm256_or_si256(a.low, b.low), _mm256_or_si256(a.high, b.high)};
}
HONE_INLINE Vec16i xor_i(Vec16i a, Vec16i b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
template <int kBits>
HONE_INLINE Vec16i shift_left(Vec16i a) {
  return {_mm256_slli_epi32(a.low, kBits), _mm256_slli_epi32(a.high, kBits)};
}
template <int kBits>
HONE_INLINE Vec16i shift_right_logical(Vec16i a) {
  return {_mm256_srli_epi32(a.low, kBits), _mm256_srli_epi32(a.high, kBits)};
}
// The same with a count known at run time.
HONE_INLINE Vec16i shift_right_by(Vec16i a, std::int64_t bits) {
  const __m128i count = _mm_cvtsi64_si128(bits);
  return {_mm256_srl_epi32(a.low, count), _mm256_srl_epi32(a.high, count)};
}
template <int kBits>
HONE_INLINE Vec16i shift_right(Vec16i a) {
  return {_mm256_srai_epi32(a.low, kBits), _mm256_srai_epi32(a.high, kBits)};
}

HONE_INLINE Mask16 less(Vec16 a, Vec16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ)};
}
HONE_INLINE Mask16 less_equal(Vec16 a, Vec16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_LE_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_LE_OQ)};
}
HONE_INLINE Mask16 equal(Vec16 a, Vec16 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ)};
}
HONE_INLINE Mask16 less_i(Vec16i a, Vec16i b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.low, a.low)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.high, a.high))};
}
HONE_INLINE Mask16 equal_i(Vec16i a, Vec16i b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(b.low, a.low)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(b.high, a.high))};
}
HONE_INLINE Mask16 mask_and(Mask16 a, Mask16 b) {
  return {_mm256_and_ps(a.low, b.low), _mm256_and_ps(a.high, b.high)};
}
HONE_INLINE Mask16 mask_or(Mask16 a, Mask16 b) {
  return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)};
}
HONE_INLINE Mask16 mask_not(Mask16 a) {
  const __m256 ones = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return {_mm256_xor_ps(a.low, ones), _mm256_xor_ps(a.high, ones)};
}
// Bit i is lane i.
HONE_INLINE std::uint32_t mask_bits(Mask16 a) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(a.low)) |
         static_cast<std::uint32_t>(_mm256_movemask_ps(a.high)) << 8;
}
// mask ? a : b
HONE_INLINE Vec16 select(Mask16 m, Vec16 a, Vec16 b) {
  return {_mm256_blendv_ps(b.low, a.low, m.low), _mm256_blendv_ps(b.high, a.high, m.high)};
}
HONE_INLINE Vec16i select_i(Mask16 m, Vec16i a, Vec16i b) {
  return bits_of(select(m, from_bits(a), from_bits(b)));
}

// 16-bit and 8-bit memory to and from 32-bit lanes. Stores keep the low bits of each lane.
HONE_INLINE Vec16i load_u16(const std::uint16_t* p) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
HONE_INLINE __m128i pack_u16(__m256i a) {
  const __m256i kept = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
  return _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
}
HONE_INLINE void store_u16(std::uint16_t* p, Vec16i a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), pack_u16(a.low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), pack_u16(a.high));
}
HONE_INLINE Vec16i load_i8(const std::int8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
HONE_INLINE void store_i8(std::int8_t* p, Vec16i a) {
  const __m256i byte = _mm256_set1_epi32(0xff);
  const __m256i words =  // 0..3, 8..11 | 4..7, 12..15
      _mm256_packus_epi32(_mm256_and_si256(a.low, byte), _mm256_and_si256(a.high, byte));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);  // 0..7 | 8..15
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
}
HONE_INLINE Vec16i load_u16_partial(const std::uint16_t* p, int count) {
  alignas(32) std::uint16_t lanes[16] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load_u16(lanes);
}
HONE_INLINE void store_u16_partial(std::uint16_t* p, Vec16i a, int count) {
  alignas(32) std::uint16_t lanes[16];
  store_u16(lanes, a);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

HONE_INLINE Vec16 load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
HONE_INLINE void store_f16(std::uint16_t* p, Vec16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.low, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.high, _MM_FROUND_TO_NEAREST_INT));
}
// One f16, at any address, in every lane.
HONE_INLINE Vec16 broadcast_f16(const void* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, 2);
  const __m256 all = _mm256_cvtph_ps(_mm_set1_epi16(static_cast<short>(bits)));
  return {all, all};
}
HONE_INLINE Vec16 load_f16_partial(const std::uint16_t* p, int count) {
  alignas(32) std::uint16_t lanes[16] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load_f16(lanes);
}
HONE_INLINE void store_f16_partial(std::uint16_t* p, Vec16 a, int count) {
  alignas(32) std::uint16_t lanes[16];
  store_f16(lanes, a);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}

HONE_INLINE float sum(Vec16 a) {
  const __m256 eight = _mm256_add_ps(a.low, a.high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
HONE_INLINE float max_lane(Vec16 a) {
  const __m256 eight = _mm256_max_ps(a.low, a.high);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
