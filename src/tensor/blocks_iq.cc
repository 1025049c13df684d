// Blocks of 256 values with a codebook: a value is scale * magnitude of a grid entry * sign. Products are
// rounded to f32 in the order of the reference decoders; factors of 1/2 and 1/4 and the signs are exact.
#include <bit>

#include "tensor/block_coders.h"
#include "tensor/block_grids.h"

namespace hone {
namespace {

constexpr std::int64_t kGroups = 8;  // of 32 values

// Eight signs from seven bits: the eighth makes the number of minus signs even.
unsigned even_signs(unsigned seven) {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

float with_sign(float value, unsigned signs, std::int64_t j) {
  return ((signs >> j) & 1u) != 0 ? -value : value;
}

float magnitude_iq2(std::uint16_t entry, std::int64_t j) {
  constexpr float kMagnitudes[4] = {8, 25, 43, 0};
  return kMagnitudes[(entry >> (2 * j)) & 3];
}
void decode_iq2_eight(float scale, std::uint16_t entry, unsigned signs, float* out) {
  for (std::int64_t j = 0; j < 8; ++j) out[j] = with_sign(scale * magnitude_iq2(entry, j), signs, j);
}

float scale_iq2(float d, unsigned quant) {
  return d * (0.5f + static_cast<float>(quant)) * 0.25f;
}

// { f16 d; { u8 grid[4]; u32 scale_and_signs } [8] }
void decode_iq2_xxs(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const std::uint8_t* from = block + 2 + group * 8;
    const std::uint32_t rest = load_u32(from + 4);
    const float scale = scale_iq2(d, rest >> 28);
    for (std::int64_t i = 0; i < 4; ++i) {
      decode_iq2_eight(scale, kGridIq2Xxs[from[i]], even_signs((rest >> (7 * i)) & 127u),
                       out + group * 32 + i * 8);
    }
  }
}

// { f16 d; u16 grid_and_signs[32]; u8 scales[8] }, a scale for 16 values.
void decode_iq2_xs(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (std::int64_t i = 0; i < 32; ++i) {
    const unsigned word = load_u16(block + 2 + i * 2);
    const float scale = scale_iq2(d, (block[66 + i / 4] >> (i / 2 % 2 * 4)) & 15u);
    decode_iq2_eight(scale, kGridIq2Xs[word & 511u], even_signs(word >> 9), out + i * 8);
  }
}

// { f16 d; u8 grid[32]; u8 signs[32]; u8 high[8]; u8 scales[8] }
void decode_iq2_s(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (std::int64_t i = 0; i < 32; ++i) {
    const unsigned high = (block[66 + i / 4] >> (i % 4 * 2)) & 3u;
    const float scale = scale_iq2(d, (block[74 + i / 4] >> (i / 2 % 2 * 4)) & 15u);
    decode_iq2_eight(scale, kGridIq2S[block[2 + i] | high << 8], block[34 + i], out + i * 8);
  }
}

// { f16 d; u8 grid[64]; u32 scale_and_signs[8] }
void decode_iq3_xxs(const std::uint8_t* block, float* out) {
  constexpr float kMagnitudes[8] = {4, 12, 20, 28, 36, 44, 52, 62};
  const float d = load_f16(block);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const std::uint32_t rest = load_u32(block + 66 + group * 4);
    const float scale = d * (0.5f + static_cast<float>(rest >> 28)) * 0.5f;
    for (std::int64_t i = 0; i < 8; ++i) {
      const unsigned signs = even_signs((rest >> (7 * (i / 2))) & 127u) >> (i % 2 * 4);
      const std::uint16_t entry = kGridIq3Xxs[block[2 + group * 8 + i]];
      float* four = out + group * 32 + i * 4;
      for (std::int64_t j = 0; j < 4; ++j)
        four[j] = with_sign(scale * kMagnitudes[(entry >> (3 * j)) & 7], signs, j);
    }
  }
}

// { f16 d; u8 grid[64]; u8 high[8]; u8 signs[32]; u8 scales[4] }
void decode_iq3_s(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const int quant = (block[106 + group / 2] >> (group % 2 * 4)) & 15;
    const float scale = d * static_cast<float>(1 + 2 * quant);
    for (std::int64_t i = 0; i < 8; ++i) {
      const unsigned high = (block[66 + group] >> i) & 1u;
      const std::uint16_t entry = kGridIq3S[block[2 + group * 8 + i] | high << 8];
      const unsigned signs = static_cast<unsigned>(block[74 + group * 4 + i / 2]) >> (i % 2 * 4);
      float* four = out + group * 32 + i * 4;
      for (std::int64_t j = 0; j < 4; ++j) {
        four[j] = with_sign(scale * static_cast<float>(1 + 2 * ((entry >> (3 * j)) & 7)), signs, j);
      }
    }
  }
}

constexpr float kIq1Delta = 0.125f;

void decode_iq1_eight(float scale, float delta, std::uint16_t entry, float* out) {
  for (std::int64_t j = 0; j < 8; ++j) {
    out[j] = scale * (static_cast<float>(((entry >> (2 * j)) & 3) - 1) + delta);
  }
}

// { f16 d; u8 grid[32]; u16 high[8] }: of `high`, three bits for each grid index, the scale, and the sign of
// delta.
void decode_iq1_s(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const unsigned rest = load_u16(block + 34 + group * 2);
    const float scale = d * static_cast<float>(2 * ((rest >> 12) & 7u) + 1);
    const float delta = (rest & 0x8000u) == 0 ? kIq1Delta : -kIq1Delta;
    for (std::int64_t i = 0; i < 4; ++i) {
      const unsigned high = (rest >> (3 * i)) & 7u;
      decode_iq1_eight(scale, delta, kGridIq1S[block[2 + group * 4 + i] | high << 8],
                       out + group * 32 + i * 8);
    }
  }
}

// { u8 grid[32]; u8 high[16]; u16 scales[4] }: the f16 d is in the top nibbles of the four scale words, the
// first one lowest.
void decode_iq1_m(const std::uint8_t* block, float* out) {
  std::uint16_t bits = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    bits = static_cast<std::uint16_t>(bits | (load_u16(block + 48 + i * 2) >> 12) << (4 * i));
  }
  const float d = f16_to_f32(bits);
  for (std::int64_t i = 0; i < 32; ++i) {
    const std::int64_t part = i / 2;  // of 16 values
    const unsigned quant = (load_u16(block + 48 + part / 4 * 2) >> (part % 4 * 3)) & 7u;
    const float scale = d * static_cast<float>(2 * quant + 1);
    const unsigned high = (block[32 + part] >> (i % 2 * 4)) & 15u;
    const float delta = (high & 8u) == 0 ? kIq1Delta : -kIq1Delta;
    decode_iq1_eight(scale, delta, kGridIq1S[block[i] | (high & 7u) << 8], out + i * 8);
  }
}

// { f16 d; u16 scales_high; u8 scales_low[4]; u8 q[128] }: iq4_nl's values with a six-bit scale a group.
void decode_iq4_xs(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  const unsigned scales_high = load_u16(block + 2);
  for (std::int64_t group = 0; group < kGroups; ++group) {
    const int low = (block[4 + group / 2] >> (group % 2 * 4)) & 15;
    const int high = static_cast<int>((scales_high >> (2 * group)) & 3u);
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t* from = block + 8 + group * 16;
    for (std::int64_t j = 0; j < 16; ++j) {
      out[group * 32 + j] = scale * static_cast<float>(kIq4Values[from[j] & 15]);
      out[group * 32 + 16 + j] = scale * static_cast<float>(kIq4Values[from[j] >> 4]);
    }
  }
}

}  // namespace

BlockDecoder iq_block_decoder(DType dtype) {
  switch (dtype) {
    case DType::IQ1_S:
      return decode_iq1_s;
    case DType::IQ1_M:
      return decode_iq1_m;
    case DType::IQ2_XXS:
      return decode_iq2_xxs;
    case DType::IQ2_XS:
      return decode_iq2_xs;
    case DType::IQ2_S:
      return decode_iq2_s;
    case DType::IQ3_XXS:
      return decode_iq3_xxs;
    case DType::IQ3_S:
      return decode_iq3_s;
    case DType::IQ4_XS:
      return decode_iq4_xs;
    default:
      return nullptr;
  }
}

}  // namespace hone
