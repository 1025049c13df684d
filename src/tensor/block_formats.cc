#include "tensor/block_formats.h"

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;

std::uint16_t load_u16(const std::uint8_t* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
std::uint32_t load_u32(const std::uint8_t* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
float load_f16(const std::uint8_t* at) {
  return f16_to_f32(load_u16(at));
}
void store_f16(float value, std::uint8_t* at) {
  const std::uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof(bits));
}

// e4m3 without infinities (OCP 8-bit floating point specification): bias 7, 0x7f is NaN.
float f8e4m3_to_f32(std::uint8_t bits) {
  const int exponent = (bits >> 3) & 15;
  const int mantissa = bits & 7;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if ((bits & 0x7f) == 0x7f) value = std::bit_cast<float>(0x7fc00000u);
  return (bits & 0x80) != 0 ? -value : value;
}

// Decoders of one block of 32 values.

void decode_q4_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const std::uint8_t* quants = block + 2;
  for (int j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>((quants[j] & 15) - 8);
    out[j + 16] = scale * static_cast<float>((quants[j] >> 4) - 8);
  }
}

void decode_q4_1(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::uint8_t* quants = block + 4;
  for (int j = 0; j < 16; ++j) {
    out[j] = scale * static_cast<float>(quants[j] & 15) + minimum;
    out[j + 16] = scale * static_cast<float>(quants[j] >> 4) + minimum;
  }
}

// The 5-bit value number j of a block: a nibble and its fifth bit.
int five_bits(const std::uint8_t* quants, std::uint32_t high, int j) {
  const int nibble = j < 16 ? quants[j] & 15 : quants[j - 16] >> 4;
  return nibble | static_cast<int>((high >> j) & 1u) << 4;
}

void decode_q5_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const std::uint32_t high = load_u32(block + 2);
  for (int j = 0; j < kBlock; ++j) out[j] = scale * static_cast<float>(five_bits(block + 6, high, j) - 16);
}

void decode_q5_1(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  const std::uint32_t high = load_u32(block + 4);
  for (int j = 0; j < kBlock; ++j) {
    out[j] = scale * static_cast<float>(five_bits(block + 8, high, j)) + minimum;
  }
}

void decode_q8_0(const std::uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (int j = 0; j < kBlock; ++j)
    out[j] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + j]));
}

void decode_q8a(const std::uint8_t* block, float* out) {
  BlockQ8A value;
  std::memcpy(&value, block, sizeof(value));
  for (int j = 0; j < kBlock; ++j) out[j] = value.scale * static_cast<float>(value.quants[j]);
}

using BlockDecoder = void (*)(const std::uint8_t* block, float* out);

BlockDecoder block_decoder(DType dtype) {
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
    default:
      return nullptr;
  }
}

// The integer part of `value`, which is not negative but for rounding, at most `largest`; NaN gives 0.
unsigned truncate(float value, unsigned largest) {
  if (!(value > 0)) return 0;
  if (value >= static_cast<float>(largest)) return largest;
  return static_cast<unsigned>(value);
}

// Encoders of one block of 32 values. The symmetric formats take as scale the value of largest magnitude (the
// first one of equals), with its sign, over the most negative quant, so that this value is met exactly.

struct SymmetricScale {
  float scale = 0;
  float inverse = 0;
};
SymmetricScale symmetric_scale(const float* values, float most_negative) {
  float largest = 0;
  for (int j = 0; j < kBlock; ++j) {
    if (std::fabs(values[j]) > std::fabs(largest)) largest = values[j];
  }
  const float scale = largest / most_negative;
  return {scale, scale != 0 ? 1.0f / scale : 0.0f};
}

struct Range {
  float minimum = FLT_MAX;
  float maximum = -FLT_MAX;
};
Range range_of(const float* values) {
  Range range;
  for (int j = 0; j < kBlock; ++j) {
    if (values[j] < range.minimum) range.minimum = values[j];
    if (values[j] > range.maximum) range.maximum = values[j];
  }
  return range;
}

void store_nibbles(const unsigned* quants, std::uint8_t* out) {
  for (int j = 0; j < 16; ++j)
    out[j] = static_cast<std::uint8_t>((quants[j] & 15u) | (quants[j + 16] & 15u) << 4);
}

void store_high_bits(const unsigned* quants, std::uint8_t* out) {
  std::uint32_t high = 0;
  for (int j = 0; j < kBlock; ++j) high |= ((quants[j] >> 4) & 1u) << j;
  std::memcpy(out, &high, sizeof(high));
}

void quantise_symmetric(const float* values, float inverse, unsigned offset, unsigned* quants) {
  const float shift = static_cast<float>(offset) + 0.5f;
  for (int j = 0; j < kBlock; ++j) quants[j] = truncate(values[j] * inverse + shift, 2 * offset - 1);
}

void quantise_range(const float* values, float minimum, float inverse, unsigned largest, unsigned* quants) {
  for (int j = 0; j < kBlock; ++j) quants[j] = truncate((values[j] - minimum) * inverse + 0.5f, largest);
}

void encode_q4_0(const float* values, std::uint8_t* out) {
  const SymmetricScale scale = symmetric_scale(values, -8);
  unsigned quants[kBlock];
  quantise_symmetric(values, scale.inverse, 8, quants);
  store_f16(scale.scale, out);
  store_nibbles(quants, out + 2);
}

void encode_q5_0(const float* values, std::uint8_t* out) {
  const SymmetricScale scale = symmetric_scale(values, -16);
  unsigned quants[kBlock];
  quantise_symmetric(values, scale.inverse, 16, quants);
  store_f16(scale.scale, out);
  store_high_bits(quants, out + 2);
  store_nibbles(quants, out + 6);
}

void encode_q4_1(const float* values, std::uint8_t* out) {
  const Range range = range_of(values);
  const float scale = (range.maximum - range.minimum) / 15;
  unsigned quants[kBlock];
  quantise_range(values, range.minimum, scale != 0 ? 1.0f / scale : 0.0f, 15, quants);
  store_f16(scale, out);
  store_f16(range.minimum, out + 2);
  store_nibbles(quants, out + 4);
}

void encode_q5_1(const float* values, std::uint8_t* out) {
  const Range range = range_of(values);
  const float scale = (range.maximum - range.minimum) / 31;
  unsigned quants[kBlock];
  quantise_range(values, range.minimum, scale != 0 ? 1.0f / scale : 0.0f, 31, quants);
  store_f16(scale, out);
  store_f16(range.minimum, out + 2);
  store_high_bits(quants, out + 4);
  store_nibbles(quants, out + 8);
}

void encode_q8_0(const float* values, std::uint8_t* out) {
  const float scale = std::fabs(symmetric_scale(values, 127).scale);
  const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
  store_f16(scale, out);
  for (int j = 0; j < kBlock; ++j) {
    const float rounded =
        std::round(values[j] * inverse);  // halves away from zero, as the format's encoder does
    const float clamped = rounded > 127 ? 127.0f : (rounded < -127 ? -127.0f : rounded);
    out[2 + j] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::isnan(clamped) ? 0.0f : clamped));
  }
}

void encode_q8a(const float* values, std::uint8_t* out) {
  const BlockQ8A block = encode_q8a_block(values);
  std::memcpy(out, &block, sizeof(block));
}

using BlockEncoder = void (*)(const float* values, std::uint8_t* out);

BlockEncoder block_encoder(DType dtype) {
  switch (dtype) {
    case DType::Q4_0:
      return encode_q4_0;
    case DType::Q4_1:
      return encode_q4_1;
    case DType::Q5_0:
      return encode_q5_0;
    case DType::Q5_1:
      return encode_q5_1;
    case DType::Q8_0:
      return encode_q8_0;
    case DType::Q8A:
      return encode_q8a;
    default:
      return nullptr;
  }
}

Error no_coder(DType dtype, std::string_view what) {
  return internal_error("block_formats", fmt::format("type {} has no {}", dtype_name(dtype), what));
}

}  // namespace

float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31u;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | mantissa << 13);
  }
  if (exponent == 0) {
    const float magnitude =
        static_cast<float>(mantissa) * 0x1p-24f;  // exact: a subnormal f16 is a normal f32
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 112u) << 23 | mantissa << 13);
}

std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t out = 0;
  if (magnitude > 0x7f800000u) {
    out = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520, half way between the largest finite f16 and 2^16
    out = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14: a normal f16
    const std::uint32_t rebased = magnitude - (112u << 23);
    out = (rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13;
  } else if (magnitude > 0x33000000u) {  // above 2^-25: a subnormal f16, a multiple of 2^-24
    const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126u - (magnitude >> 23);  // 14..24
    const std::uint32_t rest = significand & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1u);
    out = significand >> shift;
    if (rest > half || (rest == half && (out & 1u) != 0)) ++out;
  }
  return static_cast<std::uint16_t>(sign | out);
}

float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

BlockQ8A encode_q8a_block(const float* values) {
  BlockQ8A block{};
  float largest = 0;
  bool finite = true;
  for (int j = 0; j < kBlock; ++j) {
    if (std::fabs(values[j]) > largest) largest = std::fabs(values[j]);
    finite = finite && std::isfinite(values[j]);
  }
  if (!finite) {
    block.scale = std::bit_cast<float>(0x7fc00000u);
    block.sum = block.scale;
    return block;
  }
  block.scale = largest / 127.0f;
  if (block.scale == 0) return block;
  for (int j = 0; j < kBlock; ++j) {
    const float rounded = std::nearbyint(values[j] / block.scale);
    const float clamped = rounded > 127 ? 127.0f : (rounded < -127 ? -127.0f : rounded);
    block.quants[j] = static_cast<std::int8_t>(clamped);
    block.quant_sum += block.quants[j];
  }
  block.sum = block.scale * static_cast<float>(block.quant_sum);
  return block;
}

Status decode_row(DType dtype, const void* source, std::int64_t count, float* out) {
  const auto* bytes = static_cast<const std::uint8_t*>(source);
  if (const BlockDecoder decode = block_decoder(dtype)) {
    const std::int64_t block_bytes = dtype_row(dtype).block_bytes;
    for (std::int64_t b = 0; b < count / kBlock; ++b) decode(bytes + b * block_bytes, out + b * kBlock);
    return {};
  }
  switch (dtype) {
    case DType::F64:
      for (std::int64_t i = 0; i < count; ++i) {
        double value = 0;
        std::memcpy(&value, bytes + i * 8, sizeof(value));
        out[i] = static_cast<float>(value);
      }
      return {};
    case DType::F32:
      if (count > 0) std::memcpy(out, bytes, static_cast<std::size_t>(count) * sizeof(float));
      return {};
    case DType::F16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = load_f16(bytes + i * 2);
      return {};
    case DType::BF16:
      for (std::int64_t i = 0; i < count; ++i) out[i] = bf16_to_f32(load_u16(bytes + i * 2));
      return {};
    case DType::F8E4M3:
      for (std::int64_t i = 0; i < count; ++i) out[i] = f8e4m3_to_f32(bytes[i]);
      return {};
    case DType::F8E5M2:  // the high byte of an f16
      for (std::int64_t i = 0; i < count; ++i) out[i] = f16_to_f32(static_cast<std::uint16_t>(bytes[i] << 8));
      return {};
    default:
      return no_coder(dtype, "decoder");
  }
}

Status encode_row(DType dtype, const float* values, std::int64_t count, void* out) {
  auto* bytes = static_cast<std::uint8_t*>(out);
  if (const BlockEncoder encode = block_encoder(dtype)) {
    const std::int64_t block_bytes = dtype_row(dtype).block_bytes;
    for (std::int64_t b = 0; b < count / kBlock; ++b) encode(values + b * kBlock, bytes + b * block_bytes);
    return {};
  }
  switch (dtype) {
    case DType::F32:
      if (count > 0) std::memcpy(bytes, values, static_cast<std::size_t>(count) * sizeof(float));
      return {};
    case DType::F16:
      for (std::int64_t i = 0; i < count; ++i) store_f16(values[i], bytes + i * 2);
      return {};
    case DType::BF16:
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint16_t bits = f32_to_bf16(values[i]);
        std::memcpy(bytes + i * 2, &bits, sizeof(bits));
      }
      return {};
    default:
      return no_coder(dtype, "encoder");
  }
}

}  // namespace hone
