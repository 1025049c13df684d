// store_transposed (fast/transpose.h) in 16 blocks of 4 x 4, for registers of four or eight lanes.
#pragma once

#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

using Quad = float __attribute__((vector_size(16)));

HONE_INLINE void store_transposed(const Vec16 (&rows)[16], float* out, std::int64_t stride) {
  float in[16][16];
  for (int i = 0; i < 16; ++i) store(in[i], rows[i]);
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 16; j += 4) {
      Quad r[4];
      for (int k = 0; k < 4; ++k) __builtin_memcpy(&r[k], &in[i + k][j], 16);
      const Quad low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
      const Quad low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
      const Quad high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
      const Quad high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
      const Quad columns[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                               __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                               __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                               __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (int k = 0; k < 4; ++k) __builtin_memcpy(out + (j + k) * stride + i, &columns[k], 16);
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
