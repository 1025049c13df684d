// 32 values of f32 to one block of q8a (tensor/block_formats.h). With the values x:
//   scale      = max|x| / 127, rounded to f32
//   quants[j]  = x[j] / scale, rounded to f32 and then to the nearest integer, ties to even, held in -127 ..
//   127 (a
//                subnormal scale is so coarse that the quotient may lie above)
//   sum        = scale * sum of quants, rounded to f32
// A scale of 0 (all x are 0 or tiny) has quants of 0. A block with an infinity or a NaN has scale and sum NaN
// and quants of 0: every dot with it is NaN.
#pragma once

#include "kernels/fast/vec16.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

static inline void quantize_block(const float* x, BlockQ8A* out) {
  const Vec16 a = load(x);
  const Vec16 b = load(x + 16);
  const Mask16 finite = mask_and(equal(sub(a, a), zero16()), equal(sub(b, b), zero16()));
  if (mask_bits(finite) != 0xffff) {
    out->scale = __builtin_nanf("");
    out->sum = __builtin_nanf("");
    out->offset = 0;
    out->first_offset = 0;
    for (int j = 0; j < 32; ++j) out->quants[j] = 0;
    return;
  }
  const float scale = max_lane(max(absolute(a), absolute(b))) / 127.0F;
  out->scale = scale;
  const Vec16 divisor = broadcast(scale == 0.0F ? __builtin_inff() : scale);
  const Vec16 limit = broadcast(127.0F);
  const Vec16i low = to_i32(max(min(div(a, divisor), limit), negate(limit)));
  const Vec16i high = to_i32(max(min(div(b, divisor), limit), negate(limit)));
  store_i8(out->quants, low);
  store_i8(out->quants + 16, high);
  // Whole numbers of at most 32 * 127: exact in f32 in any order.
  const Vec16 first = to_f32(low);
  const float first_sum = sum(first);
  const float quant_sum = sum(add(first, to_f32(high)));
  out->first_offset = -128 * static_cast<std::int32_t>(first_sum);
  out->offset = -128 * static_cast<std::int32_t>(quant_sum);
  out->sum = scale * quant_sum;
}

// What the rounding of `values` to `first` has left, to `second`: scale * quant and the difference are each
// rounded once.
static inline void quantize_rest(const float* values, const BlockQ8A& first, BlockQ8A* second) {
  float rest[32];
  for (int i = 0; i < 32; i += 16) {
    const Vec16 taken = mul(broadcast(first.scale), to_f32(load_i8(first.quants + i)));
    store(rest + i, sub(load(values + i), taken));
  }
  quantize_block(rest, second);
}

// Both, or the first alone where `second` is nullptr.
static inline void quantize_terms(const float* values, BlockQ8A* first, BlockQ8A* second) {
  quantize_block(values, first);
  if (second != nullptr) quantize_rest(values, *first, second);
}

// A row of whole blocks.
static inline void quantize_row(const float* x, std::int64_t length, BlockQ8A* out) {
  for (std::int64_t i = 0; i < length; i += 32) quantize_block(x + i, out + i / 32);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
