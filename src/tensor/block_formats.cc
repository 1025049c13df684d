#include "tensor/block_formats.h"

#include <bit>
#include <fmt/format.h>

#include "tensor/block_coders.h"

namespace hone {
namespace {

// e4m3 without infinities (OCP 8-bit floating point specification): bias 7, 0x7f is NaN.
float f8e4m3_to_f32(std::uint8_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x80u) << 24;
  const std::uint32_t exponent = (bits >> 3) & 15u;
  const std::uint32_t mantissa = bits & 7u;
  if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 120u) << 23 | mantissa << 20);
}

BlockDecoder block_decoder(DType dtype) {
  if (const BlockDecoder decode = small_block_decoder(dtype)) return decode;
  if (const BlockDecoder decode = k_block_decoder(dtype)) return decode;
  return iq_block_decoder(dtype);
}

BlockEncoder block_encoder(DType dtype) {
  if (const BlockEncoder encode = small_block_encoder(dtype)) return encode;
  return search_block_encoder(dtype);
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

Status decode_row(DType dtype, const void* source, std::int64_t count, float* out) {
  const auto* bytes = static_cast<const std::uint8_t*>(source);
  if (const BlockDecoder decode = block_decoder(dtype)) {
    const DTypeRow& row = dtype_row(dtype);
    for (std::int64_t b = 0; b < count / row.block_elements; ++b) {
      decode(bytes + b * row.block_bytes, out + b * row.block_elements);
    }
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
    const DTypeRow& row = dtype_row(dtype);
    for (std::int64_t b = 0; b < count / row.block_elements; ++b) {
      encode(values + b * row.block_elements, bytes + b * row.block_bytes);
    }
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
