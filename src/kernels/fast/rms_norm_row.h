// One row of a root-mean-square norm; fast/rms_norm.cc says what it computes.
#pragma once

#include "kernels/fast/q8a_block.h"
#include "kernels/fast/sum16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Hands over the result 16 lanes at a time, after all of the row was read: it may be written over x.
// Without an offset w is taken as it is: -0 + 0 would be 0.
template <class Store>
[[gnu::always_inline]] inline void rms_norm_row(const float* x, const float* w, double eps, float offset,
                                                std::int64_t length, const Store& store_lanes) {
  Sum16 squares;
  clear(squares);
  for (std::int64_t i = 0; i < length; i += 16)
    add_squares_to(squares, load_partial(x + i, lanes_left(length, i)));
  const double mean = total(squares) / static_cast<double>(length);
  const Vec16 scale = broadcast(static_cast<float>(1.0 / __builtin_sqrt(mean + eps)));
  for (std::int64_t i = 0; i < length; i += 16) {
    const int count = lanes_left(length, i);
    Vec16 factor = load_partial(w + i, count);
    if (offset != 0) factor = add(factor, broadcast(offset));
    store_lanes(i, mul(mul(load_partial(x + i, count), scale), factor), count);
  }
}

static inline void rms_norm_row_f32(const float* x, const float* w, double eps, float offset,
                                    std::int64_t length, float* out) {
  rms_norm_row(x, w, eps, offset, length,
               [out](std::int64_t i, Vec16 values, int count) { store_partial(out + i, values, count); });
}

static inline void rms_norm_row_bf16(const float* x, const float* w, double eps, float offset,
                                     std::int64_t length, std::uint16_t* out) {
  rms_norm_row(x, w, eps, offset, length, [out](std::int64_t i, Vec16 values, int count) {
    store_bf16_partial(out + i, values, count);
  });
}

// Two groups of lanes make a block. `rest` is nullptr where one term is wanted.
static inline void rms_norm_row_q8a(const float* x, const float* w, double eps, float offset,
                                    std::int64_t length, BlockQ8A* out, BlockQ8A* rest) {
  float block[32];
  rms_norm_row(x, w, eps, offset, length, [&block, out, rest](std::int64_t i, Vec16 values, int) {
    store(block + i % 32, values);
    if (i % 32 != 0) quantize_terms(block, out + i / 32, rest == nullptr ? rest : rest + i / 32);
  });
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
