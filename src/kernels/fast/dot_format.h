// Block-quantised weights as whole numbers of a byte, as an integer dot takes them: of a block of 32 k of a
// panel (tensor/panel_layout.h), group g holds k = 4g .. 4g+3, one column a lane, the first k in the lowest
// byte. With `number` such a byte,
//
//   weight = scale * (number - kZero) + minimum
//
// a block has kParts scales, each of 32 / kParts values of k.
#pragma once

#include "kernels/fast/decode_words.h"
#include "kernels/fast/vec16.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

template <DType kWeight>
struct DotFormat {
  static constexpr bool kWords = kWeight == DType::Q4_K || kWeight == DType::Q5_K || kWeight == DType::Q6_K ||
                                 kWeight == DType::Q5_0 || kWeight == DType::Q5_1;
  static constexpr bool kSuper = kWeight == DType::Q4_K || kWeight == DType::Q5_K || kWeight == DType::Q6_K;
  static constexpr std::int64_t kBlocks = kSuper ? 8 : 1;  // that are stored, and have their scales, together
  static constexpr int kParts = kWeight == DType::Q6_K ? 2 : 1;
  static constexpr bool kMinimum =
      kWeight == DType::Q4_1 || kWeight == DType::Q5_1 || kWeight == DType::Q4_K || kWeight == DType::Q5_K;
  static constexpr int kZero = kWeight == DType::Q8_0   ? 128
                               : kWeight == DType::Q6_K ? 32
                               : kWeight == DType::Q5_0 ? 16
                               : kWeight == DType::Q4_0 ? 8
                                                        : 0;
};

// Blocks that are stored together, of all columns.
template <DType kWeight>
HONE_INLINE const std::byte* dot_blocks_at(const std::byte* panel, const PanelShape& shape, std::int64_t s) {
  if constexpr (DotFormat<kWeight>::kWords) return panel + shape.quants + s * shape.block_words * 4;
  return panel + shape.quants + s * (kWeight == DType::Q8_0 ? 512 : 256);
}

// Bytes of the numbers that are stored together.
template <DType kWeight>
inline constexpr std::int64_t kStoredBytes = kWeight == DType::Q8_0       ? 512
                                             : kWeight == DType::Q4_K     ? 35 * 64
                                             : kWeight == DType::Q5_K     ? 43 * 64
                                             : kWeight == DType::Q6_K     ? 52 * 64
                                             : DotFormat<kWeight>::kWords ? 5 * 64
                                                                          : 256;

template <DType kWeight>
struct DotScales {
  Vec16 scale[DotFormat<kWeight>::kBlocks * DotFormat<kWeight>::kParts];
  Vec16 minimum[DotFormat<kWeight>::kBlocks];
};

template <DType kWeight>
HONE_INLINE void read_scales(const std::byte* panel, const PanelShape& shape, std::int64_t s,
                             DotScales<kWeight>& out) {
  if constexpr (!DotFormat<kWeight>::kWords) {
    out.scale[0] = load_f16(reinterpret_cast<const std::uint16_t*>(panel) + s * 16);
    if constexpr (kWeight == DType::Q4_1) {
      out.minimum[0] = load_f16(reinterpret_cast<const std::uint16_t*>(panel + shape.minima) + s * 16);
    }
  } else {
    const WordBlock block{reinterpret_cast<const std::uint16_t*>(panel + s * shape.block_halves * 2),
                          reinterpret_cast<const std::int32_t*>(dot_blocks_at<kWeight>(panel, shape, s)),
                          nullptr};
    if constexpr (kWeight == DType::Q6_K) {
      signed_scales(block, out.scale);
    } else if constexpr (DotFormat<kWeight>::kSuper) {
      affine_scales(block, out.scale, out.minimum);
      for (Vec16& minimum : out.minimum) minimum = negate(minimum);
    } else {
      out.scale[0] = load_f16(block.halves);
      if constexpr (kWeight == DType::Q5_1) out.minimum[0] = load_f16(block.halves + 16);
    }
  }
}

// Bits 0 .. 3 of each lane as bit 0 of its bytes 0 .. 3.
HONE_INLINE Vec16i spread_bits(Vec16i bits) {
  const Vec16i two = or_i(bits, shift_left<7>(bits));
  return and_i(or_i(two, shift_left<14>(two)), broadcast_i(0x01010101));
}

// Group g of block `index` of those stored together at `blocks`.
template <DType kWeight>
HONE_INLINE Vec16i dot_group(const std::byte* blocks, std::int64_t index, std::int64_t g) {
  const auto* words = reinterpret_cast<const std::int32_t*>(blocks);
  const auto word = [words](std::int64_t w) { return load_i(words + w * 16); };
  if constexpr (kWeight == DType::Q8_0) {
    return word(g);
  } else if constexpr (kWeight == DType::Q4_0 || kWeight == DType::Q4_1) {
    const Vec16i both = word(g % 4);
    return low_nibbles(g < 4 ? both : shift_right_logical<4>(both));
  } else if constexpr (kWeight == DType::Q5_0 || kWeight == DType::Q5_1) {
    const Vec16i both = word(1 + g % 4);
    const Vec16i nibbles = low_nibbles(g < 4 ? both : shift_right_logical<4>(both));
    const Vec16i fifth = spread_bits(and_i(shift_right_by(word(0), 4 * g), broadcast_i(15)));
    return or_i(nibbles, shift_left<4>(fifth));
  } else if constexpr (kWeight == DType::Q4_K) {
    return low_nibbles(shift_right_by(word(3 + index / 2 * 8 + g), index % 2 * 4));
  } else if constexpr (kWeight == DType::Q5_K) {
    const Vec16i nibbles = low_nibbles(shift_right_by(word(11 + index / 2 * 8 + g), index % 2 * 4));
    const Vec16i fifth = and_i(shift_right_by(word(3 + g), index), broadcast_i(0x01010101));
    return or_i(nibbles, shift_left<4>(fifth));
  } else {
    static_assert(kWeight == DType::Q6_K);
    const std::int64_t half = index / 4;
    const std::int64_t quarter = index % 4;
    const Vec16i low = low_nibbles(shift_right_by(word(half * 16 + quarter % 2 * 8 + g), quarter / 2 * 4));
    const Vec16i high = bit_pairs(shift_right_by(word(32 + half * 8 + g), quarter * 2));
    return or_i(low, shift_left<4>(high));
  }
}

// Blocks of one panel unpacked: what many rows share is unpacked once for all of them. Group g of block b
// lies at (b * 8 + g) * 64.
inline constexpr std::int64_t kUnpackedBlocks = 8;
template <DType kWeight>
struct UnpackedBlocks {
  alignas(64) std::byte numbers[kUnpackedBlocks * 512];
  Vec16 scale[kUnpackedBlocks * DotFormat<kWeight>::kParts];
  Vec16 minimum[kUnpackedBlocks];
};

// `count` <= kUnpackedBlocks blocks of `panel` from `first` on.
template <DType kWeight>
HONE_INLINE void unpack_blocks(const std::byte* panel, const PanelShape& shape, std::int64_t first,
                               std::int64_t count, UnpackedBlocks<kWeight>& out) {
  using Format = DotFormat<kWeight>;
  auto* numbers = reinterpret_cast<std::int32_t*>(out.numbers);
  for (std::int64_t done = 0; done < count; done += Format::kBlocks) {
    const std::int64_t s = (first + done) / Format::kBlocks;
    DotScales<kWeight> scales;
    read_scales<kWeight>(panel, shape, s, scales);
    for (std::int64_t i = 0; i < Format::kBlocks * Format::kParts; ++i)
      out.scale[done * Format::kParts + i] = scales.scale[i];
    const std::byte* blocks = dot_blocks_at<kWeight>(panel, shape, s);
    for (std::int64_t index = 0; index < Format::kBlocks; ++index) {
      if constexpr (Format::kMinimum) out.minimum[done + index] = scales.minimum[index];
#pragma GCC unroll 8
      for (std::int64_t g = 0; g < 8; ++g)
        store_i(numbers + ((done + index) * 8 + g) * 16, dot_group<kWeight>(blocks, index, g));
    }
  }
}

// Group g of block `index`, from where the numbers are.
template <DType kWeight, bool kUnpacked>
HONE_INLINE Vec16i numbers_of(const std::byte* blocks, std::int64_t index, std::int64_t g) {
  if constexpr (kUnpacked)
    return load_i(reinterpret_cast<const std::int32_t*>(blocks) + (index * 8 + g) * 16);
  return dot_group<kWeight>(blocks, index, g);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
