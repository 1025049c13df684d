// Functions of 16 lanes that more than one kernel needs, with the same bits on every ISA level.
#pragma once

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// 2^n for integer lanes, -126 <= n <= 127.
HONE_INLINE Vec16 power_of_two(Vec16i n) {
  return from_bits(shift_left<23>(add_i(n, broadcast_i(127))));
}

// e^x. Error at most 1.02 ulp (tests/kernels/vec16_test.cc), subnormal results included; NaN stays NaN,
// e^-inf = 0, above 88.73 infinity.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite: ln 2 in two parts, the first with so few bits that its
// multiple is exact); e^r = 1 + r + r^2 q(r), q the minimax polynomial of degree 5 for the relative error of
// e^r (Remez; 2^-29.8 with rounded coefficients). 2^n is applied in two halves, each in range, so that only
// the last product rounds.
HONE_INLINE Vec16 exp(Vec16 x) {
  // Both clamps return their second operand for NaN.
  x = max(broadcast(-104.0F), x);
  x = min(broadcast(89.0F), x);
  const Vec16i n = to_i32(mul(x, broadcast(0x1.715476p+0F)));
  const Vec16 whole = to_f32(n);
  Vec16 r = fma(whole, broadcast(-0x1.62p-1F), x);
  r = fma(whole, broadcast(-0x1.c85fep-10F), r);
  Vec16 q = broadcast(0x1.9f085ap-13F);
  q = fma(q, r, broadcast(0x1.6d8d54p-10F));
  q = fma(q, r, broadcast(0x1.111272p-7F));
  q = fma(q, r, broadcast(0x1.55548ep-5F));
  q = fma(q, r, broadcast(0x1.555554p-3F));
  q = fma(q, r, broadcast(0.5F));
  const Vec16 power = add(broadcast(1.0F), fma(mul(r, r), q, r));
  const Vec16i half = shift_right<1>(n);
  return mul(mul(power, power_of_two(half)), power_of_two(sub_i(n, half)));
}

// z / (1 + e^-z)
HONE_INLINE Vec16 silu(Vec16 z) {
  return div(z, add(broadcast(1.0F), exp(negate(z))));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
