// Sums of f32 rows in f64. Element i goes to partial sum i % 16, in index order; the partial sums are folded
// as by sum(Vec16): lane i takes lane i + width/2 for widths 16, 8, 4, 2. So a row has one order of
// additions, whatever its position and the ISA level.
#pragma once

#include <cstdint>

#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

struct Sum16 {
  double lane[16];
};

HONE_INLINE void clear(Sum16& sums) {
  for (double& lane : sums.lane) lane = 0.0;
}
HONE_INLINE void add_to(Sum16& sums, Vec16 values) {
  float lanes[16];
  store(lanes, values);
  for (int i = 0; i < 16; ++i) sums.lane[i] += static_cast<double>(lanes[i]);
}
// Adds the squares, which are exact in f64.
HONE_INLINE void add_squares_to(Sum16& sums, Vec16 values) {
  float lanes[16];
  store(lanes, values);
  for (int i = 0; i < 16; ++i) sums.lane[i] += static_cast<double>(lanes[i]) * static_cast<double>(lanes[i]);
}
HONE_INLINE double total(const Sum16& sums) {
  double lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = sums.lane[i];
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// The lanes of a row of `length` from `at` on: at most 16.
HONE_INLINE int lanes_left(std::int64_t length, std::int64_t at) {
  return static_cast<int>(length - at < 16 ? length - at : 16);
}

// max with NaN kept: NaN if either operand is NaN.
HONE_INLINE Vec16 max_or_nan(Vec16 a, Vec16 b) {
  return select(is_nan(a), a, max(a, b));
}

// The largest of `length` >= 1 values, NaN if one of them is NaN.
HONE_INLINE float row_max(const float* x, std::int64_t length) {
  Vec16 largest = broadcast(x[0]);
  for (std::int64_t i = 0; i < length; i += 16) {
    const int count = lanes_left(length, i);
    const Vec16 values = load_partial(x + i, count);
    largest = max_or_nan(largest, count == 16 ? values : select(first_lanes(count), values, largest));
  }
  return mask_bits(is_nan(largest)) != 0 ? __builtin_nanf("") : max_lane(largest);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
