// Vec16 in plain C++ with the compilers' generic vectors of 16 bytes: four of them. The contract is in
// vec16.h.
#pragma once

#include <cstdint>
#include <cstring>

namespace hone::kernels::HONE_ISA_NAMESPACE {

using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using UInt4 = std::uint32_t __attribute__((vector_size(16)));
using Byte4 = std::int8_t __attribute__((vector_size(4)));
using Float2 = float __attribute__((vector_size(8)));
using Double2 = double __attribute__((vector_size(16)));
using Long2 = std::int64_t __attribute__((vector_size(16)));

struct Vec16 {
  Float4 part[4];
};
struct Vec16i {
  Int4 part[4];
};
struct Mask16 {  // all ones or all zeros in each lane
  Int4 part[4];
};

// Rows and panels of an f32 micro-kernel whose accumulators the registers hold.
inline constexpr int kFloatRows = 4;
inline constexpr int kFloatPanels = 1;

HONE_INLINE Vec16 load(const float* p) {
  Vec16 r;
  __builtin_memcpy(&r, p, 64);
  return r;
}
HONE_INLINE void store(float* p, Vec16 a) {
  __builtin_memcpy(p, &a, 64);
}
HONE_INLINE Vec16i load_i(const std::int32_t* p) {
  Vec16i r;
  __builtin_memcpy(&r, p, 64);
  return r;
}
HONE_INLINE void store_i(std::int32_t* p, Vec16i a) {
  __builtin_memcpy(p, &a, 64);
}
HONE_INLINE Vec16 broadcast(float a) {
  const Float4 v = {a, a, a, a};
  return {{v, v, v, v}};
}
HONE_INLINE Vec16i broadcast_i(std::int32_t a) {
  const Int4 v = {a, a, a, a};
  return {{v, v, v, v}};
}
HONE_INLINE Mask16 first_lanes(int count) {
  const Int4 n = {count, count, count, count};
  const Int4 index = {0, 1, 2, 3};
  return {{index < n, index + 4 < n, index + 8 < n, index + 12 < n}};
}
HONE_INLINE Vec16 load_partial(const float* p, int count) {
  Vec16 r = broadcast(0.0F);
  __builtin_memcpy(&r, p, static_cast<std::size_t>(count) * 4);
  return r;
}
HONE_INLINE void store_partial(float* p, Vec16 a, int count) {
  __builtin_memcpy(p, &a, static_cast<std::size_t>(count) * 4);
}
HONE_INLINE Vec16i load_i_partial(const std::int32_t* p, int count) {
  Vec16i r = broadcast_i(0);
  __builtin_memcpy(&r, p, static_cast<std::size_t>(count) * 4);
  return r;
}
HONE_INLINE void store_i_partial(std::int32_t* p, Vec16i a, int count) {
  __builtin_memcpy(p, &a, static_cast<std::size_t>(count) * 4);
}

HONE_INLINE Vec16 add(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] += b.part[i];
  return a;
}
HONE_INLINE Vec16 sub(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] -= b.part[i];
  return a;
}
HONE_INLINE Vec16 mul(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] *= b.part[i];
  return a;
}
HONE_INLINE Vec16 div(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] /= b.part[i];
  return a;
}
HONE_INLINE Vec16 min(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] = a.part[i] < b.part[i] ? a.part[i] : b.part[i];
  return a;
}
HONE_INLINE Vec16 max(Vec16 a, Vec16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] = a.part[i] > b.part[i] ? a.part[i] : b.part[i];
  return a;
}
HONE_INLINE Vec16 sqrt(Vec16 a) {
  alignas(16) float lanes[16];
  store(lanes, a);
  for (float& lane : lanes) lane = __builtin_sqrtf(lane);
  return load(lanes);
}

// The fused multiply-add of two lanes without the instruction. The product of two f32 is exact in f64 and
// never overflows there. The f64 sum is rounded to odd: where it is inexact and its last bit is even, it
// moves one step towards the exact value (the error of the sum, found by Knuth's two-sum, tells the side). 53
// bits rounded to odd keep all that a later rounding to 24 bits or fewer needs (Boldo and Melquiond 2008), so
// one rounding to f32 is right.
HONE_INLINE Float2 fma_two(Float2 a, Float2 b, Float2 c) {
  const Double2 product = __builtin_convertvector(a, Double2) * __builtin_convertvector(b, Double2);
  const Double2 addend = __builtin_convertvector(c, Double2);
  const Double2 total = product + addend;
  const Double2 kept = total - product;
  const Double2 error = (product - (total - kept)) + (addend - kept);
  Long2 bits;
  __builtin_memcpy(&bits, &total, 16);
  const Double2 zero = {0.0, 0.0};
  const Long2 up = (error > zero) & (total > zero);  // both comparisons are false for NaN and infinity
  const Long2 up_negative = (error < zero) & (total < zero);
  const Long2 down = (error < zero) & (total > zero);
  const Long2 down_negative = (error > zero) & (total < zero);
  const Long2 even = (bits & 1) - 1;  // all ones where the last bit is 0
  bits += even & ((down | down_negative) - (up | up_negative));
  Double2 odd;
  __builtin_memcpy(&odd, &bits, 16);
  return __builtin_convertvector(odd, Float2);
}
// a * b + c
HONE_INLINE Vec16 fma(Vec16 a, Vec16 b, Vec16 c) {
  Float2 x[8];
  Float2 y[8];
  Float2 z[8];
  __builtin_memcpy(x, &a, 64);
  __builtin_memcpy(y, &b, 64);
  __builtin_memcpy(z, &c, 64);
  for (int i = 0; i < 8; ++i) z[i] = fma_two(x[i], y[i], z[i]);
  Vec16 r;
  __builtin_memcpy(&r, z, 64);
  return r;
}

HONE_INLINE Vec16i bits_of(Vec16 a) {
  Vec16i r;
  for (int i = 0; i < 4; ++i) r.part[i] = reinterpret_cast<Int4>(a.part[i]);
  return r;
}
HONE_INLINE Vec16 from_bits(Vec16i a) {
  Vec16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = reinterpret_cast<Float4>(a.part[i]);
  return r;
}
HONE_INLINE Vec16 to_f32(Vec16i a) {
  Vec16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = __builtin_convertvector(a.part[i], Float4);
  return r;
}
HONE_INLINE Vec16i to_i32_truncate(Vec16 a) {
  Vec16i r;
  for (int i = 0; i < 4; ++i) r.part[i] = __builtin_convertvector(a.part[i], Int4);
  return r;
}
// Adding 1.5 * 2^23 leaves no fraction bits, so that addition rounds to an integer, which the low bits then
// hold.
HONE_INLINE Vec16i to_i32(Vec16 a) {
  constexpr float kShift = 12582912.0F;
  Vec16i r;
  for (int i = 0; i < 4; ++i) r.part[i] = reinterpret_cast<Int4>(a.part[i] + kShift) - 0x4b400000;
  return r;
}

HONE_INLINE Vec16i add_i(Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) {
    a.part[i] =
        reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.part[i]) + reinterpret_cast<UInt4>(b.part[i]));
  }
  return a;
}
HONE_INLINE Vec16i sub_i(Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) {
    a.part[i] =
        reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.part[i]) - reinterpret_cast<UInt4>(b.part[i]));
  }
  return a;
}
HONE_INLINE Vec16i and_i(Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) a.part[i] &= b.part[i];
  return a;
}
HONE_INLINE Vec16i or_i(Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) a.part[i] |= b.part[i];
  return a;
}
HONE_INLINE Vec16i xor_i(Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) a.part[i] ^= b.part[i];
  return a;
}
template <int kBits>
HONE_INLINE Vec16i shift_left(Vec16i a) {
  for (int i = 0; i < 4; ++i) a.part[i] = reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.part[i]) << kBits);
  return a;
}
template <int kBits>
HONE_INLINE Vec16i shift_right_logical(Vec16i a) {
  for (int i = 0; i < 4; ++i) a.part[i] = reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.part[i]) >> kBits);
  return a;
}
// The same with a count known at run time.
HONE_INLINE Vec16i shift_right_by(Vec16i a, std::int64_t bits) {
  const int count = static_cast<int>(bits);
  for (int i = 0; i < 4; ++i) a.part[i] = reinterpret_cast<Int4>(reinterpret_cast<UInt4>(a.part[i]) >> count);
  return a;
}
template <int kBits>
HONE_INLINE Vec16i shift_right(Vec16i a) {
  for (int i = 0; i < 4; ++i) a.part[i] >>= kBits;
  return a;
}

HONE_INLINE Mask16 less(Vec16 a, Vec16 b) {
  Mask16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] < b.part[i];
  return r;
}
HONE_INLINE Mask16 less_equal(Vec16 a, Vec16 b) {
  Mask16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] <= b.part[i];
  return r;
}
HONE_INLINE Mask16 equal(Vec16 a, Vec16 b) {
  Mask16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] == b.part[i];
  return r;
}
HONE_INLINE Mask16 less_i(Vec16i a, Vec16i b) {
  Mask16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] < b.part[i];
  return r;
}
HONE_INLINE Mask16 equal_i(Vec16i a, Vec16i b) {
  Mask16 r;
  for (int i = 0; i < 4; ++i) r.part[i] = a.part[i] == b.part[i];
  return r;
}
HONE_INLINE Mask16 mask_and(Mask16 a, Mask16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] &= b.part[i];
  return a;
}
HONE_INLINE Mask16 mask_or(Mask16 a, Mask16 b) {
  for (int i = 0; i < 4; ++i) a.part[i] |= b.part[i];
  return a;
}
HONE_INLINE Mask16 mask_not(Mask16 a) {
  for (int i = 0; i < 4; ++i) a.part[i] = ~a.part[i];
  return a;
}
// Bit i is lane i.
HONE_INLINE std::uint32_t mask_bits(Mask16 a) {
  std::uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= (a.part[i / 4][i % 4] != 0 ? 1U : 0U) << i;
  return bits;
}
// mask ? a : b
HONE_INLINE Vec16i select_i(Mask16 m, Vec16i a, Vec16i b) {
  for (int i = 0; i < 4; ++i) a.part[i] = (a.part[i] & m.part[i]) | (b.part[i] & ~m.part[i]);
  return a;
}
HONE_INLINE Vec16 select(Mask16 m, Vec16 a, Vec16 b) {
  return from_bits(select_i(m, bits_of(a), bits_of(b)));
}

// 16-bit and 8-bit memory to and from 32-bit lanes. Stores keep the low bits of each lane.
HONE_INLINE Vec16i load_u16_partial(const std::uint16_t* p, int count) {
  alignas(16) std::int32_t lanes[16] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load_i(lanes);
}
HONE_INLINE void store_u16_partial(std::uint16_t* p, Vec16i a, int count) {
  alignas(16) std::int32_t lanes[16];
  store_i(lanes, a);
  for (int i = 0; i < count; ++i) p[i] = static_cast<std::uint16_t>(lanes[i]);
}
HONE_INLINE Vec16i load_u16(const std::uint16_t* p) {
  return load_u16_partial(p, 16);
}
HONE_INLINE void store_u16(std::uint16_t* p, Vec16i a) {
  store_u16_partial(p, a, 16);
}
HONE_INLINE Vec16i load_i8(const std::int8_t* p) {
  Vec16i r;
  for (std::int64_t i = 0; i < 4; ++i) {
    Byte4 bytes;
    __builtin_memcpy(&bytes, p + i * 4, 4);
    r.part[i] = __builtin_convertvector(bytes, Int4);
  }
  return r;
}
HONE_INLINE void store_i8(std::int8_t* p, Vec16i a) {
  alignas(16) std::int32_t lanes[16];
  store_i(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(lanes[i]);
}

// Exponent and fraction move 13 places to the left; 2^112 takes the exponent from bias 15 to bias 127,
// exactly, and makes f16 subnormals normal on the way. What lay above the largest f16 was infinity or NaN.
HONE_INLINE Vec16 f16_bits_to_f32(Vec16i half) {
  const Vec16i magnitude = shift_left<13>(and_i(half, broadcast_i(0x7fff)));
  Vec16i bits = bits_of(mul(from_bits(magnitude), broadcast(0x1p112F)));
  const Mask16 special = less_i(broadcast_i(0x0f7fffff), magnitude);
  const Mask16 nan = less_i(broadcast_i(0x0f800000), magnitude);
  bits = select_i(special, or_i(bits, broadcast_i(0x7f800000)), bits);
  bits = select_i(nan, or_i(bits, broadcast_i(0x00400000)), bits);
  return from_bits(or_i(bits, shift_left<16>(and_i(half, broadcast_i(0x8000)))));
}
// Normal results: round to nearest even in the integers, as for bf16 (vec16.h), and rebias; the carry of the
// largest value runs into infinity. Subnormal results: adding 0.5 aligns the last place of the sum with
// 2^-24, f16's last place.
HONE_INLINE Vec16i f32_to_f16_bits(Vec16 a) {
  const Vec16i magnitude = and_i(bits_of(a), broadcast_i(INT32_MAX));
  const Vec16i sign = and_i(shift_right_logical<16>(bits_of(a)), broadcast_i(0x8000));
  const Vec16i odd = and_i(shift_right_logical<13>(magnitude), broadcast_i(1));
  const Vec16i rebias = broadcast_i(static_cast<std::int32_t>(0xc8000000U));  // -112 in the exponent field
  const Vec16i normal =
      shift_right_logical<13>(add_i(add_i(magnitude, rebias), add_i(odd, broadcast_i(0xfff))));
  const Vec16i small = sub_i(bits_of(add(from_bits(magnitude), broadcast(0.5F))), broadcast_i(0x3f000000));
  Vec16i r = select_i(less_i(magnitude, broadcast_i(0x38800000)), small, normal);
  r = select_i(less_i(magnitude, broadcast_i(0x47800000)), r, broadcast_i(0x7c00));
  const Vec16i quiet =
      or_i(broadcast_i(0x7e00), and_i(shift_right_logical<13>(magnitude), broadcast_i(0x3ff)));
  r = select_i(less_i(broadcast_i(0x7f800000), magnitude), quiet, r);
  return or_i(r, sign);
}
HONE_INLINE Vec16 load_f16(const std::uint16_t* p) {
  return f16_bits_to_f32(load_u16(p));
}
// One f16, at any address, in every lane.
HONE_INLINE Vec16 broadcast_f16(const void* p) {
  std::uint16_t bits;
  __builtin_memcpy(&bits, p, 2);
  return f16_bits_to_f32(broadcast_i(bits));
}
HONE_INLINE Vec16 load_f16_partial(const std::uint16_t* p, int count) {
  return f16_bits_to_f32(load_u16_partial(p, count));
}
HONE_INLINE void store_f16(std::uint16_t* p, Vec16 a) {
  store_u16(p, f32_to_f16_bits(a));
}
HONE_INLINE void store_f16_partial(std::uint16_t* p, Vec16 a, int count) {
  store_u16_partial(p, f32_to_f16_bits(a), count);
}

HONE_INLINE float sum(Vec16 a) {
  const Float4 four = (a.part[0] + a.part[2]) + (a.part[1] + a.part[3]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
HONE_INLINE float max_of(float a, float b) {
  return a > b ? a : b;
}
HONE_INLINE float max_lane(Vec16 a) {
  alignas(16) float lanes[16];
  store(lanes, a);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = max_of(lanes[i], lanes[i + width]);
  }
  return lanes[0];
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
