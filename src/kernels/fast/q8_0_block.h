// 32 values of f32 to one block of q8_0 { f16 d; i8 q[32] }, byte for byte as
// tensor/block_formats.h:encode_row does:
//   scale = max|x| / 127, rounded to f32; d is scale rounded to f16
//   q[j]  = x[j] * (1 / scale), each operation rounded to f32, then to the nearest integer, halves away from
//           zero, held in -127 .. 127; 0 where scale is 0
// A block with an infinity or a NaN has a NaN for d and quants of 0, so that every value read from it is NaN.
#pragma once

#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// To the nearest integer, halves away from zero, for |x| <= 127: the largest f32 below one half is added away
// from zero (one half itself would carry the f32 just below it up), and the rest is cut off.
HONE_INLINE Vec16i round_half_away(Vec16 x) {
  const Vec16i sign = and_i(bits_of(x), broadcast_i(INT32_MIN));
  const Vec16 half = from_bits(or_i(bits_of(broadcast(0x1.fffffep-2F)), sign));
  return to_i32_truncate(add(x, half));
}

static inline void quantize_block_q8_0(const float* x, char* out) {
  const Vec16 a = load(x);
  const Vec16 b = load(x + 16);
  const Mask16 finite = mask_and(equal(sub(a, a), zero16()), equal(sub(b, b), zero16()));
  std::int8_t* const quants = reinterpret_cast<std::int8_t*>(out + 2);
  if (mask_bits(finite) != 0xffff) {
    const std::uint16_t no_number = 0x7e00;
    __builtin_memcpy(out, &no_number, 2);
    for (int j = 0; j < 32; ++j) quants[j] = 0;
    return;
  }
  const float scale = max_lane(max(absolute(a), absolute(b))) / 127.0F;
  std::uint16_t d = 0;
  store_f16_partial(&d, broadcast(scale), 1);
  __builtin_memcpy(out, &d, 2);  // at any address
  const Vec16 inverse = broadcast(scale == 0.0F ? 0.0F : 1.0F / scale);
  const Vec16 limit = broadcast(127.0F);
  const Vec16 parts[] = {a, b};
  for (int i = 0; i < 2; ++i) {
    // 1 / scale is infinite where scale is tiny; 0 times it is no number, and 0 in the format's encoder.
    const Vec16 scaled = mul(parts[i], inverse);
    const Vec16 held = max(min(scaled, limit), negate(limit));
    store_i8(quants + 16 * i, round_half_away(select(is_nan(scaled), zero16(), held)));
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
