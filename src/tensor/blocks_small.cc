#include <bit>
#include <cmath>

#include "tensor/block_coders.h"

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;

// Decoders of one block of 32 values.

void decode_q4_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const std::uint8_t* quants = block + 2;
  for (std::int64_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>((quants[j] & 15) - 8);
    out[j + 16] = scale * static_cast<float>((quants[j] >> 4) - 8);
  }
}

void decode_q4_1(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::uint8_t* quants = block + 4;
  for (std::int64_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(quants[j] & 15) + minimum;
    out[j + 16] = scale * static_cast<float>(quants[j] >> 4) + minimum;
  }
}

// The 5-bit value number j of a block: a nibble and its fifth bit.
int five_bits(const std::uint8_t* quants, std::uint32_t high, std::int64_t j) {
  const int nibble = j < 16 ? quants[j] & 15 : quants[j - 16] >> 4;
  return nibble | static_cast<int>((high >> j) & 1u) << 4;
}

void decode_q5_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const std::uint32_t high = load_u32(block + 2);
  for (std::int64_t j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(five_bits(block + 6, high, j) - 16);
}

void decode_q5_1(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::uint32_t high = load_u32(block + 4);
  for (std::int64_t j = 0; j < kBlock; ++j) {
    out[j] = scale * static_cast<float>(five_bits(block + 8, high, j)) + minimum;
  }
}

void decode_q8_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (std::int64_t j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + j]));
}

void decode_q8a(const std::uint8_t* block, float* out) {
  BlockQ8A value;
  std::memcpy(&value, block, sizeof(value));
  for (std::int64_t j = 0; j < kBlock; ++j) out[j] = value.scale * static_cast<float>(value.quants[j]);
}

void decode_iq4_nl(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (std::int64_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(kIq4Values[block[2 + j] & 15]);
    out[j + 16] = scale * static_cast<float>(kIq4Values[block[2 + j] >> 4]);
  }
}

// e2m1 (OCP microscaling formats, v1.0), doubled, so that all are integers.
constexpr std::int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Half of the e8m0 scale 2^(e - 127), since the values are doubled.
float half_e8m0(std::uint8_t e) {
  const std::uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

void decode_mxfp4(const std::uint8_t* block, float* out) {
  const float scale = half_e8m0(block[0]);
  for (std::int64_t j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(kE2m1Values[block[1 + j] & 15]);
    out[j + 16] = scale * static_cast<float>(kE2m1Values[block[1 + j] >> 4]);
  }
}

// Half of an unsigned e4m3 of bias 7; its NaN counts as 0, as in the reference decoder.
float half_ue4m3(std::uint8_t bits) {
  if (bits == 0x7f) return 0;
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

void decode_nvfp4(const std::uint8_t* block, float* out) {
  for (std::int64_t part = 0; part < 4; ++part) {
    const float scale = half_ue4m3(block[part]);
    const std::uint8_t* quants = block + 4 + part * 8;
    for (std::int64_t j = 0; j < 8; ++j) {
      out[part * 16 + j] = scale * static_cast<float>(kE2m1Values[quants[j] & 15]);
      out[part * 16 + 8 + j] = scale * static_cast<float>(kE2m1Values[quants[j] >> 4]);
    }
  }
}

}  // namespace

BlockDecoder small_block_decoder(DType dtype) {
  switch (dtype) {
    case DType::Q4_0:
      return decode_q4_0;
    case DType::Q4_1:
      return decode_q4_1;
    case DType::Q5_0:
      return decode_q5_0;
    case DType::Q5_1:
      return decode_q5_1;
    case DType::Q8_0:
      return decode_q8_0;
    case DType::Q8A:
      return decode_q8a;
    case DType::IQ4_NL:
      return decode_iq4_nl;
    case DType::MXFP4:
      return decode_mxfp4;
    case DType::NVFP4:
      return decode_nvfp4;
    default:
      return nullptr;
  }
}

}  // namespace hone
