// Blocks of a panel with words (tensor/panel_layout.h) to f32, a lane for each column. Every value has the
// bits of decode_row: the same products and sums, each rounded on its own.
#pragma once

#include "kernels/fast/vec16.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// One block of all columns: its f16 values, its words [words,16], and where its values go [values,16].
struct WordBlock {
  const std::uint16_t* halves;
  const std::int32_t* words;
  float* out;
};

HONE_INLINE Vec16i word_at(const WordBlock& block, std::int64_t i) {
  return load_i(block.words + i * 16);
}

// The four bytes of `quants` as values k .. k+3: scale * (byte - offset).
HONE_INLINE void store_scaled(const WordBlock& block, std::int64_t k, Vec16i quants, Vec16 scale,
                              Vec16i offset) {
  for (std::int64_t b = 0; b < 4; ++b) {
    const Vec16i quant = sub_i(and_i(quants, broadcast_i(0xff)), offset);
    store(block.out + (k + b) * 16, mul(scale, to_f32(quant)));
    quants = shift_right_logical<8>(quants);
  }
}

// scale * byte - minimum.
HONE_INLINE void store_affine(const WordBlock& block, std::int64_t k, Vec16i quants, Vec16 scale,
                              Vec16 minimum) {
  for (std::int64_t b = 0; b < 4; ++b) {
    const Vec16i quant = and_i(quants, broadcast_i(0xff));
    store(block.out + (k + b) * 16, sub(mul(scale, to_f32(quant)), minimum));
    quants = shift_right_logical<8>(quants);
  }
}

HONE_INLINE Vec16i low_nibbles(Vec16i word) {
  return and_i(word, broadcast_i(0x0f0f0f0f));
}
HONE_INLINE Vec16i bit_pairs(Vec16i word) {
  return and_i(word, broadcast_i(0x03030303));
}

// Scales and minima of the eight groups of q4_k and q5_k, from the three words of six-bit integers.
HONE_INLINE void affine_scales(const WordBlock& block, Vec16* scale, Vec16* minimum) {
  const Vec16 d = load_f16(block.halves);
  const Vec16 d_minimum = load_f16(block.halves + 16);
  Vec16i first = word_at(block, 0);
  Vec16i second = word_at(block, 1);
  Vec16i third = word_at(block, 2);
  for (std::int64_t g = 0; g < 4; ++g) {
    scale[g] = mul(d, to_f32(and_i(first, broadcast_i(63))));
    minimum[g] = mul(d_minimum, to_f32(and_i(second, broadcast_i(63))));
    const Vec16i high_scale = and_i(shift_right_logical<2>(first), broadcast_i(0x30));
    const Vec16i high_minimum = and_i(shift_right_logical<2>(second), broadcast_i(0x30));
    const Vec16i low_minimum = and_i(shift_right_logical<4>(third), broadcast_i(15));
    scale[g + 4] = mul(d, to_f32(or_i(and_i(third, broadcast_i(15)), high_scale)));
    minimum[g + 4] = mul(d_minimum, to_f32(or_i(low_minimum, high_minimum)));
    first = shift_right_logical<8>(first);
    second = shift_right_logical<8>(second);
    third = shift_right_logical<8>(third);
  }
}

static inline void decode_q4_k(const WordBlock& block) {
  Vec16 scale[8];
  Vec16 minimum[8];
  affine_scales(block, scale, minimum);
  for (std::int64_t c = 0; c < 4; ++c) {
    for (std::int64_t j = 0; j < 8; ++j) {
      const Vec16i word = word_at(block, 3 + c * 8 + j);
      const std::int64_t k = c * 64 + j * 4;
      store_affine(block, k, low_nibbles(word), scale[2 * c], minimum[2 * c]);
      store_affine(block, k + 32, low_nibbles(shift_right_logical<4>(word)), scale[2 * c + 1],
                   minimum[2 * c + 1]);
    }
  }
}

static inline void decode_q5_k(const WordBlock& block) {
  Vec16 scale[8];
  Vec16 minimum[8];
  affine_scales(block, scale, minimum);
  const Vec16i ones = broadcast_i(0x01010101);
  for (std::int64_t j = 0; j < 8; ++j) {
    Vec16i high = word_at(block, 3 + j);  // bit g of each byte belongs to group g
    for (std::int64_t c = 0; c < 4; ++c) {
      const Vec16i word = word_at(block, 11 + c * 8 + j);
      const std::int64_t k = c * 64 + j * 4;
      const Vec16i even = shift_left<4>(and_i(high, ones));
      const Vec16i odd = shift_left<4>(and_i(shift_right_logical<1>(high), ones));
      high = shift_right_logical<2>(high);
      store_affine(block, k, or_i(low_nibbles(word), even), scale[2 * c], minimum[2 * c]);
      store_affine(block, k + 32, or_i(low_nibbles(shift_right_logical<4>(word)), odd), scale[2 * c + 1],
                   minimum[2 * c + 1]);
    }
  }
}

// Scales of the sixteen parts of q6_k: its f16 value times a signed byte.
HONE_INLINE void signed_scales(const WordBlock& block, Vec16* scale) {
  const Vec16 d = load_f16(block.halves);
  for (std::int64_t p = 0; p < 16; p += 4) {
    Vec16i word = word_at(block, 48 + p / 4);
    for (std::int64_t b = 0; b < 4; ++b) {
      scale[p + b] = mul(d, to_f32(shift_right<24>(shift_left<24>(word))));
      word = shift_right_logical<8>(word);
    }
  }
}

static inline void decode_q6_k(const WordBlock& block) {
  const Vec16i offset = broadcast_i(32);
  Vec16 scale[16];
  signed_scales(block, scale);
  for (std::int64_t half = 0; half < 2; ++half) {
    for (std::int64_t j = 0; j < 8; ++j) {
      const Vec16i first = word_at(block, half * 16 + j);
      const Vec16i second = word_at(block, half * 16 + 8 + j);
      Vec16i high = word_at(block, 32 + half * 8 + j);
      const Vec16i low[4] = {low_nibbles(first), low_nibbles(second),
                             low_nibbles(shift_right_logical<4>(first)),
                             low_nibbles(shift_right_logical<4>(second))};
      for (std::int64_t g = 0; g < 4; ++g) {
        const Vec16i quants = or_i(low[g], shift_left<4>(bit_pairs(high)));
        high = shift_right_logical<2>(high);
        store_scaled(block, half * 128 + g * 32 + j * 4, quants, scale[half * 8 + g * 2 + j / 4], offset);
      }
    }
  }
}

static inline void decode_q2_k(const WordBlock& block) {
  const Vec16 d = load_f16(block.halves);
  const Vec16 d_minimum = load_f16(block.halves + 16);
  Vec16 scale[16];
  Vec16 minimum[16];
  for (std::int64_t p = 0; p < 16; p += 4) {
    Vec16i word = word_at(block, p / 4);
    for (std::int64_t b = 0; b < 4; ++b) {
      scale[p + b] = mul(d, to_f32(and_i(word, broadcast_i(15))));
      minimum[p + b] = mul(d_minimum, to_f32(and_i(shift_right_logical<4>(word), broadcast_i(15))));
      word = shift_right_logical<8>(word);
    }
  }
  for (std::int64_t half = 0; half < 2; ++half) {
    for (std::int64_t j = 0; j < 8; ++j) {
      Vec16i word = word_at(block, 4 + half * 8 + j);
      for (std::int64_t g = 0; g < 4; ++g) {
        const std::int64_t part = half * 8 + g * 2 + j / 4;
        store_affine(block, half * 128 + g * 32 + j * 4, bit_pairs(word), scale[part], minimum[part]);
        word = shift_right_logical<2>(word);
      }
    }
  }
}

static inline void decode_q3_k(const WordBlock& block) {
  const Vec16 d = load_f16(block.halves);
  Vec16 scale[16];
  Vec16i high = word_at(block, 26);  // two bits of part p at byte p % 4, bits 2 (p / 4)
  for (std::int64_t p = 0; p < 16; ++p) {
    if (p % 4 == 0 && p > 0) high = shift_right_logical<2>(high);
    Vec16i low = word_at(block, 24 + p % 8 / 4);
    Vec16i top = high;
    for (std::int64_t b = 0; b < p % 4; ++b) {
      low = shift_right_logical<8>(low);
      top = shift_right_logical<8>(top);
    }
    if (p >= 8) low = shift_right_logical<4>(low);
    const Vec16i six = or_i(and_i(low, broadcast_i(15)), shift_left<4>(and_i(top, broadcast_i(3))));
    scale[p] = mul(d, to_f32(sub_i(six, broadcast_i(32))));
  }
  const Vec16i offset = broadcast_i(4);
  const Vec16i ones = broadcast_i(0x01010101);
  for (std::int64_t j = 0; j < 8; ++j) {
    Vec16i mask = word_at(block, j);  // bit g of each byte belongs to group g
    for (std::int64_t half = 0; half < 2; ++half) {
      Vec16i word = word_at(block, 8 + half * 8 + j);
      for (std::int64_t g = 0; g < 4; ++g) {
        const Vec16i quants = or_i(bit_pairs(word), shift_left<2>(and_i(mask, ones)));
        store_scaled(block, half * 128 + g * 32 + j * 4, quants, scale[half * 8 + g * 2 + j / 4], offset);
        word = shift_right_logical<2>(word);
        mask = shift_right_logical<1>(mask);
      }
    }
  }
}

// Value k of q5_0 and q5_1 has its fifth bit at bit k of the first word.
template <bool kMinimum>
static inline void decode_q5(const WordBlock& block) {
  const Vec16 scale = load_f16(block.halves);
  const Vec16 minimum = kMinimum ? load_f16(block.halves + 16) : zero16();
  Vec16i high = word_at(block, 0);
  for (std::int64_t k = 0; k < 32; k += 4) {
    const Vec16i word = word_at(block, 1 + k % 16 / 4);
    Vec16i nibbles = low_nibbles(k < 16 ? word : shift_right_logical<4>(word));
    for (std::int64_t b = 0; b < 4; ++b) {
      const Vec16i fifth = shift_left<4>(and_i(high, broadcast_i(1)));
      const Vec16i quant = or_i(and_i(nibbles, broadcast_i(15)), fifth);
      const Vec16 value = kMinimum ? add(mul(scale, to_f32(quant)), minimum)
                                   : mul(scale, to_f32(sub_i(quant, broadcast_i(16))));
      store(block.out + (k + b) * 16, value);
      nibbles = shift_right_logical<8>(nibbles);
      high = shift_right_logical<1>(high);
    }
  }
}

// table[index] in each lane; 0 <= index < 16.
HONE_INLINE Vec16 lookup16(const float* table, Vec16i index) {
  alignas(64) std::int32_t indices[16];
  alignas(64) float values[16];
  store_i(indices, index);
  for (std::int64_t l = 0; l < 16; ++l) values[l] = table[indices[l]];
  return load(values);
}

static inline void decode_iq4_nl(const WordBlock& block) {
  // tensor/block_coders.h has them as integers.
  constexpr float kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  const Vec16 scale = load_f16(block.halves);
  for (std::int64_t k = 0; k < 32; k += 4) {
    const Vec16i word = word_at(block, k % 16 / 4);
    Vec16i nibbles = low_nibbles(k < 16 ? word : shift_right_logical<4>(word));
    for (std::int64_t b = 0; b < 4; ++b) {
      store(block.out + (k + b) * 16, mul(scale, lookup16(kValues, and_i(nibbles, broadcast_i(15)))));
      nibbles = shift_right_logical<8>(nibbles);
    }
  }
}

template <DType kWeight>
HONE_INLINE void decode_word_block(const WordBlock& block) {
  if constexpr (kWeight == DType::Q2_K) {
    decode_q2_k(block);
  } else if constexpr (kWeight == DType::Q3_K) {
    decode_q3_k(block);
  } else if constexpr (kWeight == DType::Q4_K) {
    decode_q4_k(block);
  } else if constexpr (kWeight == DType::Q5_K) {
    decode_q5_k(block);
  } else if constexpr (kWeight == DType::Q6_K) {
    decode_q6_k(block);
  } else if constexpr (kWeight == DType::Q5_0) {
    decode_q5<false>(block);
  } else if constexpr (kWeight == DType::Q5_1) {
    decode_q5<true>(block);
  } else {
    static_assert(kWeight == DType::IQ4_NL);
    decode_iq4_nl(block);
  }
}

// Values [first, first + count) of K, whole blocks, to out [count,16].
template <DType kWeight>
static void decode_words(const std::byte* panel, const PanelShape& shape, std::int64_t first,
                         std::int64_t count, float* out) {
  constexpr bool kSmall = kWeight == DType::Q5_0 || kWeight == DType::Q5_1 || kWeight == DType::IQ4_NL;
  constexpr std::int64_t kBlock = kSmall ? 32 : 256;
  for (std::int64_t k = 0; k < count; k += kBlock) {
    const std::int64_t b = (first + k) / kBlock;
    decode_word_block<kWeight>(
        {reinterpret_cast<const std::uint16_t*>(panel + b * shape.block_halves * 2),
         reinterpret_cast<const std::int32_t*>(panel + shape.quants + b * shape.block_words * 4),
         out + k * 16});
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
