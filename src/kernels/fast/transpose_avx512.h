// store_transposed (fast/transpose.h) in registers of sixteen lanes: 64 shuffles and no memory between.
#pragma once

#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

using Lanes = float __attribute__((vector_size(64)));

// In each quarter of four lanes, the first or the last two of a and b in turn: a0 b0 a1 b1, a2 b2 a3 b3.
HONE_INLINE Lanes first_lanes_in_turn(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
HONE_INLINE Lanes last_lanes_in_turn(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
// The same of pairs: a0 a1 b0 b1, a2 a3 b2 b3.
HONE_INLINE Lanes first_pairs(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
HONE_INLINE Lanes last_pairs(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
// The quarters 0 and 2, or 1 and 3, of a and then of b.
HONE_INLINE Lanes even_quarters(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
HONE_INLINE Lanes odd_quarters(Lanes a, Lanes b) {
  return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

HONE_INLINE void store_transposed(const Vec16 (&rows)[16], float* out, std::int64_t stride) {
  Lanes r[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const Lanes a = rows[i].v;
    const Lanes b = rows[i + 1].v;
    const Lanes c = rows[i + 2].v;
    const Lanes d = rows[i + 3].v;
    // Row i + n then holds column 4q + n of the four rows in its quarter q.
    r[i] = first_pairs(first_lanes_in_turn(a, b), first_lanes_in_turn(c, d));
    r[i + 1] = last_pairs(first_lanes_in_turn(a, b), first_lanes_in_turn(c, d));
    r[i + 2] = first_pairs(last_lanes_in_turn(a, b), last_lanes_in_turn(c, d));
    r[i + 3] = last_pairs(last_lanes_in_turn(a, b), last_lanes_in_turn(c, d));
  }
#pragma GCC unroll 4
  for (int n = 0; n < 4; ++n) {
    const Lanes even = even_quarters(r[n], r[4 + n]);
    const Lanes odd = odd_quarters(r[n], r[4 + n]);
    const Lanes even_below = even_quarters(r[8 + n], r[12 + n]);
    const Lanes odd_below = odd_quarters(r[8 + n], r[12 + n]);
    store(out + n * stride, {even_quarters(even, even_below)});
    store(out + (4 + n) * stride, {even_quarters(odd, odd_below)});
    store(out + (8 + n) * stride, {odd_quarters(even, even_below)});
    store(out + (12 + n) * stride, {odd_quarters(odd, odd_below)});
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
