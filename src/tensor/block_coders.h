// Inside tensor/: the coders of single blocks by format family, behind decode_row and encode_row.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/block_formats.h"
#include "tensor/dtype.h"

namespace hone {

// One block of dtype_row(dtype).block_elements values; null for a type of another family.
using BlockDecoder = void (*)(const std::uint8_t* block, float* out);
using BlockEncoder = void (*)(const float* values, std::uint8_t* out);

BlockDecoder small_block_decoder(DType dtype);   // blocks_small.cc: blocks of 16 or 32 values
BlockEncoder small_block_encoder(DType dtype);   // encoders_small.cc
BlockEncoder search_block_encoder(DType dtype);  // encoders_k.cc: q4_k, q5_k, q6_k, iq4_nl
BlockDecoder k_block_decoder(DType dtype);       // blocks_k.cc: q2_k .. q6_k, tq1_0, tq2_0
BlockDecoder iq_block_decoder(DType dtype);      // blocks_iq.cc: the iq formats with a codebook

// The 16 values of iq4_nl and iq4_xs (ggml-common.h, kvalues_iq4nl).
inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

inline std::uint16_t load_u16(const std::uint8_t* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
inline std::uint32_t load_u32(const std::uint8_t* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}
inline float load_f16(const std::uint8_t* at) {
  return f16_to_f32(load_u16(at));
}
inline void store_f16(float value, std::uint8_t* at) {
  const std::uint16_t bits = f32_to_f16(value);
  std::memcpy(at, &bits, sizeof(bits));
}

}  // namespace hone
