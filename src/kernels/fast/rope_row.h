// One row of a rotary embedding; fast/rope.cc says what it computes. `out` may be `x`.
#pragma once

#include "kernels/fast/axes.h"
#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

static inline void rotate_halves(const float* x, const float* cos, const float* sin, std::int64_t half,
                                 float* out) {
  for (std::int64_t i = 0; i < half; i += 16) {
    const int count = static_cast<int>(smaller(16, half - i));
    const Vec16 first = load_partial(x + i, count);
    const Vec16 second = load_partial(x + half + i, count);
    const Vec16 c = load_partial(cos + i, count);
    const Vec16 s = load_partial(sin + i, count);
    store_partial(out + i, sub(mul(first, c), mul(second, s)), count);
    store_partial(out + half + i, add(mul(second, c), mul(first, s)), count);
  }
}

static inline void rotate_pairs(const float* x, const float* cos, const float* sin, std::int64_t half,
                                float* out) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float first = x[2 * i];
    const float second = x[2 * i + 1];
    out[2 * i] = first * cos[i] - second * sin[i];
    out[2 * i + 1] = second * cos[i] + first * sin[i];
  }
}

// The offset of token (b, t) in a view whose first two axes broadcast.
HONE_INLINE std::int64_t token_offset(const TensorView& view, std::int64_t b, std::int64_t t) {
  return (view.shape[0] == 1 ? 0 : b * view.strides[0]) + (view.shape[1] == 1 ? 0 : t * view.strides[1]);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
