// Vec16: 16 lanes of f32, the one vector type in which every fast kernel is written. The level's header holds
// the instructions; the law is that every function gives the same bits on every level:
//
//   add sub mul div sqrt fma   IEEE single precision, round to nearest even, subnormals kept; fma rounds once
//   min(a,b)  a < b ? a : b    max(a,b)  a > b ? a : b    (the second operand if either is NaN)
//   less, less_equal, equal    false if either operand is NaN
//   sum(v)                     halves are folded from width 16 to 8, 4, 2, 1: lane i takes lane i + width/2
//   max_lane(v)                the same tree with max
//   to_i32(v)                  nearest, ties to even; defined for |lane| <= 2^22
//   to_i32_truncate(v)         toward zero; defined for |lane| < 2^31
//   f16, bf16                  nearest even, overflow to infinity, subnormals kept, NaN stays NaN (quiet)
//
// The payload and sign of a NaN result are not part of the law. Pointers need no alignment. A partial load
// gives zeros in the lanes past `count`, a partial store leaves memory past `count` alone; 0 <= count <= 16.
#pragma once

#include <cstddef>
#include <cstdint>

// In front of every function of a header under fast/: nothing of an ISA level's code is ever emitted as a
// weak symbol.
#define HONE_INLINE [[gnu::always_inline]] static inline

#if HONE_ISA_LEVEL >= 2
#include "kernels/fast/vec16_avx512.h"
#elif HONE_ISA_LEVEL == 1
#include "kernels/fast/vec16_avx2.h"
#else
#include "kernels/fast/vec16_portable.h"
#endif

namespace hone::kernels::HONE_ISA_NAMESPACE {

HONE_INLINE Vec16 zero16() {
  return broadcast(0.0F);
}
HONE_INLINE Vec16 negate(Vec16 a) {
  return from_bits(xor_i(bits_of(a), broadcast_i(INT32_MIN)));
}
HONE_INLINE Vec16 absolute(Vec16 a) {
  return from_bits(and_i(bits_of(a), broadcast_i(INT32_MAX)));
}
HONE_INLINE Mask16 is_nan(Vec16 a) {
  return mask_not(equal(a, a));
}

HONE_INLINE Vec16 load_bf16(const std::uint16_t* p) {
  return from_bits(shift_left<16>(load_u16(p)));
}
HONE_INLINE Vec16 load_bf16_partial(const std::uint16_t* p, int count) {
  return from_bits(shift_left<16>(load_u16_partial(p, count)));
}

// Adding 0x7fff plus the lowest kept bit carries into the kept half exactly when the dropped half is above
// one half, or equal to it with an odd kept half. A NaN is made quiet instead, for its payload could be
// carried away.
HONE_INLINE Vec16i round_to_bf16(Vec16 a) {
  const Vec16i bits = bits_of(a);
  const Vec16i odd = and_i(shift_right_logical<16>(bits), broadcast_i(1));
  const Vec16i rounded = shift_right_logical<16>(add_i(bits, add_i(odd, broadcast_i(0x7fff))));
  const Vec16i quiet = or_i(shift_right_logical<16>(bits), broadcast_i(0x40));
  return select_i(is_nan(a), quiet, rounded);
}
HONE_INLINE void store_bf16(std::uint16_t* p, Vec16 a) {
  store_u16(p, round_to_bf16(a));
}
HONE_INLINE void store_bf16_partial(std::uint16_t* p, Vec16 a, int count) {
  store_u16_partial(p, round_to_bf16(a), count);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
