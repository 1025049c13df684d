#include <bit>
#include <cfloat>
#include <cmath>

#include "tensor/block_coders.h"

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;

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
  for (std::int64_t j = 0; j < kBlock; ++j) {
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
  for (std::int64_t j = 0; j < kBlock; ++j) {
    if (values[j] < range.minimum) range.minimum = values[j];
    if (values[j] > range.maximum) range.maximum = values[j];
  }
  return range;
}

void store_nibbles(const unsigned* quants, std::uint8_t* out) {
  for (std::int64_t j = 0; j < 16; ++j)
    out[j] = static_cast<std::uint8_t>((quants[j] & 15u) | (quants[j + 16] & 15u) << 4);
}

void store_high_bits(const unsigned* quants, std::uint8_t* out) {
  std::uint32_t high = 0;
  for (std::int64_t j = 0; j < kBlock; ++j) high |= ((quants[j] >> 4) & 1u) << j;
  std::memcpy(out, &high, sizeof(high));
}

void quantise_symmetric(const float* values, float inverse, unsigned offset, unsigned* quants) {
  const float shift = static_cast<float>(offset) + 0.5f;
  for (std::int64_t j = 0; j < kBlock; ++j) quants[j] = truncate(values[j] * inverse + shift, 2 * offset - 1);
}

void quantise_range(const float* values, float minimum, float inverse, unsigned largest, unsigned* quants) {
  for (std::int64_t j = 0; j < kBlock; ++j)
    quants[j] = truncate((values[j] - minimum) * inverse + 0.5f, largest);
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
  for (std::int64_t j = 0; j < kBlock; ++j) {
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

}  // namespace

BlockQ8A encode_q8a_block(const float* values) {
  BlockQ8A block{};
  float largest = 0;
  bool finite = true;
  for (std::int64_t j = 0; j < kBlock; ++j) {
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
  std::int32_t quant_sum = 0;
  for (std::int64_t j = 0; j < kBlock; ++j) {
    const float rounded = std::nearbyint(values[j] / block.scale);
    const float clamped = rounded > 127 ? 127.0f : (rounded < -127 ? -127.0f : rounded);
    block.quants[j] = static_cast<std::int8_t>(clamped);
    quant_sum += block.quants[j];
    if (j == kBlock / 2 - 1) block.first_offset = -128 * quant_sum;
  }
  block.sum = block.scale * static_cast<float>(quant_sum);
  block.offset = -128 * quant_sum;
  return block;
}

BlockEncoder small_block_encoder(DType dtype) {
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

}  // namespace hone
