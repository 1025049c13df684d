// Integer dots in plain C++. The contract is in dot.h.
#pragma once

#include "kernels/fast/vec16.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 4;

// Four k of 16 columns with the same four of one row: `four` holds bytes 0..255 in each lane.
HONE_INLINE Vec16i add_group_dot(Vec16i four, const std::int8_t* x, Vec16i sum) {
  for (int j = 0; j < 4; ++j) {
    const Vec16i w = and_i(four, broadcast_i(0xff));
    four = shift_right_logical<8>(four);
    // |w * x| <= 255 * 127 < 2^24: the f32 product is exact, and SSE2 has no 32-bit integer product.
    sum = add_i(sum, to_i32_truncate(mul(to_f32(w), broadcast(static_cast<float>(x[j])))));
  }
  return sum;
}

template <int kRows>
HONE_INLINE void dot_block_8(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
  for (std::int64_t r = 0; r < kRows; ++r) {
    const BlockQ8A& block = x[r * stride];
    out[r] = broadcast_i(-128 * block.quant_sum);
    for (std::int64_t g = 0; g < 8; ++g) {
      out[r] = add_group_dot(load_i(reinterpret_cast<const std::int32_t*>(quants + g * 64)),
                             block.quants + g * 4, out[r]);
    }
  }
}

template <int kRows, bool kCentred>
HONE_INLINE void dot_block_4(const std::uint8_t* quants, const BlockQ8A* x, std::int64_t stride,
                             Vec16i* out) {
  for (std::int64_t r = 0; r < kRows; ++r) {
    const BlockQ8A& block = x[r * stride];
    out[r] = broadcast_i(kCentred ? -8 * block.quant_sum : 0);
    for (std::int64_t g = 0; g < 4; ++g) {
      const Vec16i both = load_i(reinterpret_cast<const std::int32_t*>(quants + g * 64));
      const Vec16i low = and_i(both, broadcast_i(0x0f0f0f0f));
      const Vec16i high = and_i(shift_right_logical<4>(both), broadcast_i(0x0f0f0f0f));
      out[r] = add_group_dot(low, block.quants + g * 4, out[r]);
      out[r] = add_group_dot(high, block.quants + (g + 4) * 4, out[r]);
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
