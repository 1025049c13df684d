// Integer dots in plain C++. The contract is in dot.h.
#pragma once

#include "kernels/fast/dot_format.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr int kDotRows = 4;
inline constexpr int kDotPanels = 1;

// Four k of 16 columns with the same four of one row: `four` holds bytes -128 .. 127 in each lane if
// kSigned, else 0 .. 255.
HONE_INLINE Vec16i add_group_dot(Vec16i four, const std::int8_t* x, Vec16i sum) {
  for (int j = 0; j < 4; ++j) {
    const Vec16i w = and_i(four, broadcast_i(0xff));
    four = shift_right_logical<8>(four);
    // |w * x| <= 255 * 127 < 2^24: the f32 product is exact, and SSE2 has no 32-bit integer product.
    sum = add_i(sum, to_i32_truncate(mul(to_f32(w), broadcast(static_cast<float>(x[j])))));
  }
  return sum;
}

template <DType kWeight, bool kUnpacked, int kRows, int kPanels>
HONE_INLINE void dot_part(const std::byte* blocks, std::int64_t panel_bytes, std::int64_t index, int part,
                          const BlockQ8A* x, std::int64_t stride, Vec16i (&out)[kRows][kPanels]) {
  using Format = DotFormat<kWeight>;
  constexpr std::int64_t kGroups = 8 / Format::kParts;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const BlockQ8A& block = x[r * stride];
    for (int p = 0; p < kPanels; ++p) {
      std::int32_t offset = block.offset;
      if (Format::kParts == 2) offset = part == 0 ? block.first_offset : offset - block.first_offset;
      Vec16i sum = broadcast_i(offset / 128 * Format::kZero);
      for (std::int64_t i = 0; i < kGroups; ++i) {
        const std::int64_t g = part * kGroups + i;
        sum = add_group_dot(numbers_of<kWeight, kUnpacked>(blocks + p * panel_bytes, index, g),
                            block.quants + g * 4, sum);
      }
      out[r][p] = sum;
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
