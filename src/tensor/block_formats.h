// The block-quantised formats: how a block of values is stored, decoding to f32, and encoding.
//
//   q4_0  { f16 d; u8 q[16] }           value = d * (nibble - 8)      GGUF, ggml type 2
//   q4_1  { f16 d; f16 m; u8 q[16] }    value = d * nibble + m        ggml type 3
//   q5_0  { f16 d; u32 high; u8 q[16] } value = d * (5 bits - 16)     ggml type 6
//   q5_1  { f16 d; f16 m; u32 high; u8 q[16] }  value = d * 5 bits + m   ggml type 7
//   q8_0  { f16 d; i8 q[32] }           value = d * q                 ggml type 8
//
//   iq4_nl like q4_0 with value = d * table[nibble]; mxfp4, nvfp4: 4-bit floats with an 8-bit float scale
//   blocks of 256: q2_k .. q6_k, tq1_0, tq2_0 (blocks_k.cc); iq1_s .. iq4_xs (blocks_iq.cc)
//
// Nibbles: byte j holds value j in its low half and value j + 16 in its high half; bit j of `high` is the
// fifth bit of value j. All little endian. A product and a sum are rounded separately, as in the reference
// decoders.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "tensor/dtype.h"

namespace hone {

// Values of the largest block.
inline constexpr std::int64_t kLargestBlock = 256;

// Activations of an int8 matmul: what assign-precision rounds to. hone's own format, never in a file.
// value = scale * quants[j]. With all arithmetic in f32:
//   scale = max|x| / 127            quants[j] = x[j] / scale, rounded to nearest (ties to even), clamped to
//   +-127
// The sum of the rounded values, not of the exact ones: a q4_1 weight d*q + m is centred while q is not, so
// with the exact sum the rounding errors of the products would stand alone, about twice as large
// (SmolLM2: 1.57 against 0.41 in the logits). (the clamp acts where scale is subnormal). Scale 0 (all zero,
// or underflow): quants are 0. A NaN or an infinity among the values: scale and sum are NaN, quants are 0, so
// that NaN spreads to every output of the dot product.
struct BlockQ8A {
  float scale;  // f32, so that no activation overflows it
  float sum;    // scale * sum of quants: the offset term of q4_1 sees the same rounded values as its products
  std::int32_t offset;  // -128 * sum of quants: takes an integer offset of the weights out again, exactly
  std::int32_t first_offset;  // -128 * sum of the first 16: for weights with a scale for each 16 (q6_k)
  std::int8_t quants[32];
};
static_assert(sizeof(BlockQ8A) == 48);

// f16 (IEEE binary16) and bf16 to and from f32, in software, round to nearest even; NaN stays NaN.
float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);

// Decodes `count` values (a multiple of the block size) of any float type of `dtype` at `source` to `out`
// [count]. An error (Fault::Hone) for a type that has no decoder.
Status decode_row(DType dtype, const void* source, std::int64_t count, float* out);

// One block of activations, exactly as defined at BlockQ8A; `sum` is added in f64 and rounded once.
BlockQ8A encode_q8a_block(const float* values);

// Encodes `values` [count] as `dtype`, rounding to nearest. Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 as the reference
// encoders of the GGUF format do (byte-equal; tests/tensor/block_formats_test.cc), Q8A, and F32, F16, BF16.
// Q4_K, Q5_K, Q6_K and IQ4_NL by a search for the least squared error (encoders_k.cc).
// An error (Fault::Hone) for a type that has no encoder.
Status encode_row(DType dtype, const float* values, std::int64_t count, void* out);

}  // namespace hone
