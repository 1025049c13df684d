// Blocks of 256 values: the k formats and the ternary ones. Every product and every sum is rounded to f32 on
// its own, as in the reference decoders.
#include "tensor/block_coders.h"

namespace hone {
namespace {

constexpr std::int64_t kValues = 256;
constexpr std::int64_t kGroup = 32;

// { u8 scales[16]: scale low, minimum high nibble; u8 q[64]; f16 d; f16 dmin }
// Group g of 32 values lies in bytes 32 (g/4) .. of q, at bits 2 (g%4).
void decode_q2_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* quants = block + 16;
  const float d = load_f16(block + 80);
  const float d_minimum = load_f16(block + 82);
  for (std::int64_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(block[part] & 15);
    const float minimum = d_minimum * static_cast<float>(block[part] >> 4);
    const std::int64_t group = part / 2;
    const std::uint8_t* from = quants + group / 4 * kGroup + part % 2 * 16;
    for (std::int64_t j = 0; j < 16; ++j) {
      const float product = scale * static_cast<float>((from[j] >> (group % 4 * 2)) & 3);
      out[part * 16 + j] = product - minimum;
    }
  }
}

// The 16 six-bit scales of q3_k: low nibbles in bytes 0..7, two high bits in bytes 8..11.
int scale_q3_k(const std::uint8_t* scales, std::int64_t part) {
  const int low = (scales[part % 8] >> (part / 8 * 4)) & 15;
  const int high = (scales[8 + part % 4] >> (part / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

// { u8 high[32]; u8 q[64]; u8 scales[12]; f16 d }; a set high bit means that 4 is not taken off.
void decode_q3_k(const std::uint8_t* block, float* out) {
  const std::uint8_t* quants = block + 32;
  const float d = load_f16(block + 108);
  for (std::int64_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(scale_q3_k(block + 96, part));
    const std::int64_t group = part / 2;
    const std::uint8_t* from = quants + group / 4 * kGroup + part % 2 * 16;
    const std::uint8_t* high = block + part % 2 * 16;
    for (std::int64_t j = 0; j < 16; ++j) {
      const int low = (from[j] >> (group % 4 * 2)) & 3;
      const int offset = ((high[j] >> group) & 1) != 0 ? 0 : 4;
      out[part * 16 + j] = scale * static_cast<float>(low - offset);
    }
  }
}

// Scale and minimum number `group` of q4_k and q5_k, six bits each, in 12 bytes: four whole of each, and the
// last four split.
struct ScaleAndMinimum {
  int scale;
  int minimum;
};
ScaleAndMinimum scale_q4_k(const std::uint8_t* scales, std::int64_t group) {
  if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
  const std::int64_t g = group - 4;
  return {(scales[8 + g] & 15) | (scales[g] >> 6) << 4, (scales[8 + g] >> 4) | (scales[4 + g] >> 6) << 4};
}

// { f16 d; f16 dmin; u8 scales[12]; u8 q[128] }; groups 2c and 2c+1 are the nibbles of bytes 32c .. 32c+31.
void decode_q4_k(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  const float d_minimum = load_f16(block + 2);
  for (std::int64_t group = 0; group < kValues / kGroup; ++group) {
    const ScaleAndMinimum part = scale_q4_k(block + 4, group);
    const float scale = d * static_cast<float>(part.scale);
    const float minimum = d_minimum * static_cast<float>(part.minimum);
    const std::uint8_t* from = block + 16 + group / 2 * kGroup;
    const std::int64_t shift = group % 2 * 4;
    for (std::int64_t j = 0; j < kGroup; ++j) {
      const float product = scale * static_cast<float>((from[j] >> shift) & 15);
      out[group * kGroup + j] = product - minimum;
    }
  }
}

// { f16 d; f16 dmin; u8 scales[12]; u8 high[32]; u8 q[128] }: q4_k and bit g of high[j] for value j of group
// g.
void decode_q5_k(const std::uint8_t* block, float* out) {
  const float d = load_f16(block);
  const float d_minimum = load_f16(block + 2);
  const std::uint8_t* high = block + 16;
  for (std::int64_t group = 0; group < kValues / kGroup; ++group) {
    const ScaleAndMinimum part = scale_q4_k(block + 4, group);
    const float scale = d * static_cast<float>(part.scale);
    const float minimum = d_minimum * static_cast<float>(part.minimum);
    const std::uint8_t* from = block + 48 + group / 2 * kGroup;
    const std::int64_t shift = group % 2 * 4;
    for (std::int64_t j = 0; j < kGroup; ++j) {
      const int quant = ((from[j] >> shift) & 15) | ((high[j] >> group) & 1) << 4;
      const float product = scale * static_cast<float>(quant);
      out[group * kGroup + j] = product - minimum;
    }
  }
}

// { u8 low[128]; u8 high[64]; i8 scales[16]; f16 d }. Of each half of 128 values, group g (0..3) has its low
// nibbles in bytes 32 (g%2) .., low half for g < 2, and its two high bits in the half's 32 bytes of `high`.
void decode_q6_k(const std::uint8_t* block, float* out) {
  const float d = load_f16(block + 208);
  for (std::int64_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + part]));
    const std::int64_t half = part / 8;
    const std::int64_t group = part / 2 % 4;
    const std::uint8_t* low = block + half * 64 + group % 2 * kGroup + part % 2 * 16;
    const std::uint8_t* high = block + 128 + half * kGroup + part % 2 * 16;
    for (std::int64_t j = 0; j < 16; ++j) {
      const int quant = ((low[j] >> (group / 2 * 4)) & 15) | ((high[j] >> (group * 2)) & 3) << 4;
      out[part * 16 + j] = scale * static_cast<float>(quant - 32);
    }
  }
}

// { u8 q[48]; u8 last[4]; f16 d }: five base-3 digits a byte, as a fraction of 256: digit k is what passes
// 256 when the byte times 3^k (modulo 256) is multiplied by 3.
void decode_tq1_0(const std::uint8_t* block, float* out) {
  constexpr std::uint8_t kPowers[5] = {1, 3, 9, 27, 81};
  const float d = load_f16(block + 52);
  const auto digits = [&](const std::uint8_t* from, std::int64_t bytes, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t j = 0; j < bytes; ++j) {
        const auto fraction = static_cast<std::uint8_t>(from[j] * kPowers[k]);
        *out++ = d * static_cast<float>((fraction * 3 >> 8) - 1);
      }
    }
  };
  digits(block, 32, 5);
  digits(block + 32, 16, 5);
  digits(block + 48, 4, 4);
}

// { u8 q[64]; f16 d }: group g lies in bytes 32 (g/4) .., at bits 2 (g%4).
void decode_tq2_0(const std::uint8_t* block, float* out) {
  const float d = load_f16(block + 64);
  for (std::int64_t group = 0; group < kValues / kGroup; ++group) {
    const std::uint8_t* from = block + group / 4 * kGroup;
    for (std::int64_t j = 0; j < kGroup; ++j) {
      out[group * kGroup + j] = d * static_cast<float>(((from[j] >> (group % 4 * 2)) & 3) - 1);
    }
  }
}

}  // namespace

BlockDecoder k_block_decoder(DType dtype) {
  switch (dtype) {
    case DType::Q2_K:
      return decode_q2_k;
    case DType::Q3_K:
      return decode_q3_k;
    case DType::Q4_K:
      return decode_q4_k;
    case DType::Q5_K:
      return decode_q5_k;
    case DType::Q6_K:
      return decode_q6_k;
    case DType::TQ1_0:
      return decode_tq1_0;
    case DType::TQ2_0:
      return decode_tq2_0;
    default:
      return nullptr;
  }
}

}  // namespace hone
