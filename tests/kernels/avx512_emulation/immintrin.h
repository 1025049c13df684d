// Stands in for the compiler's immintrin.h (its folder is searched first): the AVX-512 intrinsics that the
// fast kernels name, computed with AVX2 and plain loops, so that the code of that level runs on machines
// without it.
//
// SIMDe (simd-everywhere) has most of them and takes over their names. Those that its version 0.7.4 lacks
// follow here, from the operation sections of Intel's Intrinsics Guide. Lane 0 is the lowest in memory; a
// masked load or store does not touch the memory of a lane whose mask bit is clear.
#pragma once

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#define HONE_EMULATION [[gnu::always_inline]] static inline

namespace hone::avx512_emulation {

inline constexpr int kLanes = 16;

HONE_EMULATION __mmask16 kand(__mmask16 a, __mmask16 b) {
  return static_cast<__mmask16>(a & b);
}
HONE_EMULATION __mmask16 kor(__mmask16 a, __mmask16 b) {
  return static_cast<__mmask16>(a | b);
}
HONE_EMULATION __mmask16 knot(__mmask16 a) {
  return static_cast<__mmask16>(~a);
}
HONE_EMULATION bool is_set(__mmask16 mask, int lane) {
  return (mask >> lane & 1) != 0;
}

HONE_EMULATION simde__m512 maskz_loadu_ps(__mmask16 mask, const void* p) {
  simde__m512_private r;
  for (int i = 0; i < kLanes; ++i) {
    r.f32[i] = is_set(mask, i) ? static_cast<const float*>(p)[i] : 0.0F;
  }
  return simde__m512_from_private(r);
}
HONE_EMULATION void mask_storeu_ps(void* p, __mmask16 mask, simde__m512 a) {
  const simde__m512_private x = simde__m512_to_private(a);
  for (int i = 0; i < kLanes; ++i) {
    if (is_set(mask, i)) static_cast<float*>(p)[i] = x.f32[i];
  }
}
HONE_EMULATION simde__m512i maskz_loadu_epi32(__mmask16 mask, const void* p) {
  simde__m512i_private r;
  for (int i = 0; i < kLanes; ++i) {
    r.i32[i] = is_set(mask, i) ? static_cast<const std::int32_t*>(p)[i] : 0;
  }
  return simde__m512i_from_private(r);
}
HONE_EMULATION void mask_storeu_epi32(void* p, __mmask16 mask, simde__m512i a) {
  const simde__m512i_private x = simde__m512i_to_private(a);
  for (int i = 0; i < kLanes; ++i) {
    if (is_set(mask, i)) static_cast<std::int32_t*>(p)[i] = x.i32[i];
  }
}
HONE_EMULATION simde__m256i maskz_loadu_epi16(__mmask16 mask, const void* p) {
  simde__m256i_private r;
  for (int i = 0; i < kLanes; ++i) {
    r.u16[i] = is_set(mask, i) ? static_cast<const std::uint16_t*>(p)[i] : std::uint16_t{0};
  }
  return simde__m256i_from_private(r);
}
HONE_EMULATION void mask_storeu_epi16(void* p, __mmask16 mask, simde__m256i a) {
  const simde__m256i_private x = simde__m256i_to_private(a);
  for (int i = 0; i < kLanes; ++i) {
    if (is_set(mask, i)) static_cast<std::uint16_t*>(p)[i] = x.u16[i];
  }
}

HONE_EMULATION __mmask16 cmplt_epi32_mask(simde__m512i a, simde__m512i b) {
  const simde__m512i_private x = simde__m512i_to_private(a);
  const simde__m512i_private y = simde__m512i_to_private(b);
  unsigned mask = 0;
  for (int i = 0; i < kLanes; ++i) mask |= (x.i32[i] < y.i32[i] ? 1U : 0U) << i;
  return static_cast<__mmask16>(mask);
}
HONE_EMULATION simde__m512i srai_epi32(simde__m512i a, unsigned bits) {
  simde__m512i_private x = simde__m512i_to_private(a);
  for (int i = 0; i < kLanes; ++i) x.i32[i] >>= bits > 31 ? 31 : bits;
  return simde__m512i_from_private(x);
}

// Integers are extended, or cut to their low bits.
HONE_EMULATION simde__m512i cvtepi8_epi32(simde__m128i a) {
  const simde__m128i_private x = simde__m128i_to_private(a);
  simde__m512i_private r;
  for (int i = 0; i < kLanes; ++i) r.i32[i] = x.i8[i];
  return simde__m512i_from_private(r);
}
HONE_EMULATION simde__m512i cvtepu16_epi32(simde__m256i a) {
  const simde__m256i_private x = simde__m256i_to_private(a);
  simde__m512i_private r;
  for (int i = 0; i < kLanes; ++i) r.u32[i] = x.u16[i];
  return simde__m512i_from_private(r);
}
HONE_EMULATION simde__m256i cvtepi32_epi16(simde__m512i a) {
  const simde__m512i_private x = simde__m512i_to_private(a);
  simde__m256i_private r;
  for (int i = 0; i < kLanes; ++i) r.u16[i] = static_cast<std::uint16_t>(x.u32[i]);
  return simde__m256i_from_private(r);
}
HONE_EMULATION simde__m128i cvtepi32_epi8(simde__m512i a) {
  const simde__m512i_private x = simde__m512i_to_private(a);
  simde__m128i_private r;
  for (int i = 0; i < kLanes; ++i) r.u8[i] = static_cast<std::uint8_t>(x.u32[i]);
  return simde__m128i_from_private(r);
}

// Conversions that round, or that handle NaN, are the AVX2 and F16C instructions of the same name on each
// half.
HONE_EMULATION simde__m512 cvtepi32_ps(simde__m512i a) {
  const simde__m512i_private x = simde__m512i_to_private(a);
  simde__m512_private r;
  for (int half = 0; half < 2; ++half) r.m256[half] = _mm256_cvtepi32_ps(x.m256i[half]);
  return simde__m512_from_private(r);
}
HONE_EMULATION simde__m512i cvtps_epi32(simde__m512 a) {
  const simde__m512_private x = simde__m512_to_private(a);
  simde__m512i_private r;
  for (int half = 0; half < 2; ++half) r.m256i[half] = _mm256_cvtps_epi32(x.m256[half]);
  return simde__m512i_from_private(r);
}
HONE_EMULATION simde__m512i cvttps_epi32(simde__m512 a) {
  const simde__m512_private x = simde__m512_to_private(a);
  simde__m512i_private r;
  for (int half = 0; half < 2; ++half) r.m256i[half] = _mm256_cvttps_epi32(x.m256[half]);
  return simde__m512i_from_private(r);
}
HONE_EMULATION simde__m512 cvtph_ps(simde__m256i a) {
  const simde__m256i_private x = simde__m256i_to_private(a);
  simde__m512_private r;
  for (int half = 0; half < 2; ++half) r.m256[half] = _mm256_cvtph_ps(x.m128i[half]);
  return simde__m512_from_private(r);
}
template <int kRounding>
HONE_EMULATION simde__m256i cvtps_ph(simde__m512 a) {
  const simde__m512_private x = simde__m512_to_private(a);
  simde__m256i_private r;
  for (int half = 0; half < 2; ++half) r.m128i[half] = _mm256_cvtps_ph(x.m256[half], kRounding);
  return simde__m256i_from_private(r);
}

template <int kHalf>
HONE_EMULATION simde__m256 extractf32x8_ps(simde__m512 a) {
  return simde__m512_to_private(a).m256[kHalf & 1];
}

}  // namespace hone::avx512_emulation

// The compiler declares these names too, as functions or as macros.
#undef _kand_mask16
#undef _kor_mask16
#undef _knot_mask16
#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi32
#undef _mm512_mask_storeu_epi32
#undef _mm256_maskz_loadu_epi16
#undef _mm256_mask_storeu_epi16
#undef _mm512_cmplt_epi32_mask
#undef _mm512_srai_epi32
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#undef _mm512_cvtepi32_ps
#undef _mm512_cvtps_epi32
#undef _mm512_cvttps_epi32
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#undef _mm512_extractf32x8_ps
#define _kand_mask16 hone::avx512_emulation::kand
#define _kor_mask16 hone::avx512_emulation::kor
#define _knot_mask16 hone::avx512_emulation::knot
#define _mm512_maskz_loadu_ps hone::avx512_emulation::maskz_loadu_ps
#define _mm512_mask_storeu_ps hone::avx512_emulation::mask_storeu_ps
#define _mm512_maskz_loadu_epi32 hone::avx512_emulation::maskz_loadu_epi32
#define _mm512_mask_storeu_epi32 hone::avx512_emulation::mask_storeu_epi32
#define _mm256_maskz_loadu_epi16 hone::avx512_emulation::maskz_loadu_epi16
#define _mm256_mask_storeu_epi16 hone::avx512_emulation::mask_storeu_epi16
#define _mm512_cmplt_epi32_mask hone::avx512_emulation::cmplt_epi32_mask
#define _mm512_srai_epi32 hone::avx512_emulation::srai_epi32
#define _mm512_cvtepi8_epi32 hone::avx512_emulation::cvtepi8_epi32
#define _mm512_cvtepu16_epi32 hone::avx512_emulation::cvtepu16_epi32
#define _mm512_cvtepi32_epi16 hone::avx512_emulation::cvtepi32_epi16
#define _mm512_cvtepi32_epi8 hone::avx512_emulation::cvtepi32_epi8
#define _mm512_cvtepi32_ps hone::avx512_emulation::cvtepi32_ps
#define _mm512_cvtps_epi32 hone::avx512_emulation::cvtps_epi32
#define _mm512_cvttps_epi32 hone::avx512_emulation::cvttps_epi32
#define _mm512_cvtph_ps hone::avx512_emulation::cvtph_ps
#define _mm512_cvtps_ph(a, rounding) hone::avx512_emulation::cvtps_ph<rounding>(a)
#define _mm512_extractf32x8_ps(a, half) hone::avx512_emulation::extractf32x8_ps<half>(a)
