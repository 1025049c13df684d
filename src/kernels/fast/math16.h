// Functions of 16 lanes that more than one kernel needs, with the same bits on every ISA level.
#pragma once

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// 2^n for integer lanes, -126 <= n <= 127.
HONE_INLINE Vec16 power_of_two(Vec16i n) {
  return from_bits(shift_left<23>(add_i(n, broadcast_i(127))));
}

// e^x. Error at most 1.05 ulp (below), subnormal results included; NaN stays NaN,
// e^-inf = 0, above 88.73 infinity.
//
// x = n ln 2 + r with |r| <= ln 2 / 2 (Cody and Waite: ln 2 in two parts, the first with so few bits that its
// multiple is exact); e^r = 1 + r + r^2 q(r), q the minimax polynomial of degree 5 for the relative error of
// e^r (Remez; 2^-29.8 with rounded coefficients). 2^n is applied in two halves, each in range, so that only
// the last product rounds.
//
// In ulp of e^r >= 1/sqrt(2), of 2^-24: the last sum rounds (0.5), as do r (at most 2^-26, times e^r: 0.2)
// and the sum under it (0.25); the second part of ln 2 is off by 2^-35 of itself, times n <= 150 (0.05);
// polynomial, q and r^2 (0.05).
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

// tanh x. Error below 2 ulp (tests/kernels/strips_test.cc); NaN stays NaN, tanh(-0) = -0, exact +-1 from 9.02
// on.
//
// |x| < 0.625: x + x^3 p(x^2), p of degree 5 interpolating (tanh(x)/x - 1)/x^2 at the Chebyshev nodes of the
// interval (relative error 2^-27.8 with rounded coefficients). Else 1 - 2 / (e^2|x| + 1) with the sign of x:
// there the subtracted term is at most 0.45, so its error counts less than half.
HONE_INLINE Vec16 tanh(Vec16 x) {
  const Vec16 magnitude = absolute(x);
  const Vec16 z = mul(x, x);
  Vec16 p = broadcast(0x1.2c83cp-9F);
  p = fma(p, z, broadcast(-0x1.116a16p-7F));
  p = fma(p, z, broadcast(0x1.64a976p-6F));
  p = fma(p, z, broadcast(-0x1.ba08c4p-5F));
  p = fma(p, z, broadcast(0x1.1110eap-3F));
  p = fma(p, z, broadcast(-0x1.555556p-2F));
  const Vec16 near = fma(mul(x, z), p, x);
  const Vec16 one = broadcast(1.0F);
  const Vec16 far = sub(one, div(broadcast(2.0F), add(exp(add(magnitude, magnitude)), one)));
  const Vec16 unsigned_zero = select(less(magnitude, broadcast(0.625F)), near, far);
  return from_bits(or_i(bits_of(unsigned_zero), and_i(bits_of(x), broadcast_i(INT32_MIN))));
}

// z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))) (Hendrycks and Gimpel 2016), each operation rounded once, in
// the order in which the models spell it.
HONE_INLINE Vec16 gelu_tanh(Vec16 z) {
  const Vec16 cube = mul(mul(z, z), z);
  const Vec16 inner = mul(add(z, mul(cube, broadcast(0.044715F))), broadcast(0x1.988454p-1F));
  return mul(mul(z, broadcast(0.5F)), add(tanh(inner), broadcast(1.0F)));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
