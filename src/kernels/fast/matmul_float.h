// x f32 times panels of weights, in f32.
//
// The order of additions of every output, on every ISA level and for every count of rows and panels: k is cut
// into segments of 256; within a segment one chain acc = fma(x[k], w[k], acc) from 0 in the order of k; the
// segments' sums are added to the total, from 0, in order. Quantised weights are first decoded to f32 exactly
// as decode_row does it.
#pragma once

#include "kernels/fast/decode_words.h"
#include "kernels/fast/matmul_rows.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr std::int64_t kSegment = 256;
// Scratch: a segment of decoded weights of each panel of a step.
inline constexpr std::int64_t kSegmentBytes = kFloatPanels * kSegment * 16 * 4;

template <DType kWeight>
HONE_INLINE Vec16 load_weights(const void* elements, std::int64_t k) {
  if constexpr (kWeight == DType::F32) {
    return load(static_cast<const float*>(elements) + k * 16);
  } else if constexpr (kWeight == DType::F16) {
    return load_f16(static_cast<const std::uint16_t*>(elements) + k * 16);
  } else {
    return load_bf16(static_cast<const std::uint16_t*>(elements) + k * 16);
  }
}

// sums[p * kTileRows + r] += the chain of row r and panel p over `count` values of k, for kRows rows of
// kPanels panels, `panel_bytes` apart. x and weights start at the segment.
template <DType kWeight, int kRows, int kPanels>
static void add_segment(const float* x, std::int64_t x_stride, const std::byte* weights,
                        std::int64_t panel_bytes, std::int64_t count, float* sums) {
  Vec16 acc[kRows][kPanels];
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) acc[r][p] = zero16();
  }
  for (std::int64_t k = 0; k < count; ++k) {
    Vec16 w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) w[p] = load_weights<kWeight>(weights + p * panel_bytes, k);
#pragma GCC unroll 16
    for (std::int64_t r = 0; r < kRows; ++r) {
      const Vec16 factor = broadcast(x[r * x_stride + k]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) acc[r][p] = fma(factor, w[p], acc[r][p]);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      float* sum = sums + (std::int64_t{p} * kTileRows + r) * 16;
      store(sum, add(load(sum), acc[r][p]));
    }
  }
}

template <DType kWeight, int kPanels>
static void add_segment_rows(const float* x, std::int64_t x_stride, const std::byte* weights,
                             std::int64_t panel_bytes, std::int64_t count, int rows, float* sums) {
  std::int64_t r = 0;
  for (; r + kFloatRows <= rows; r += kFloatRows) {
    add_segment<kWeight, kFloatRows, kPanels>(x + r * x_stride, x_stride, weights, panel_bytes, count,
                                              sums + r * 16);
  }
  for (; r + 3 <= rows; r += 3) {
    add_segment<kWeight, 3, kPanels>(x + r * x_stride, x_stride, weights, panel_bytes, count, sums + r * 16);
  }
  for (; r < rows; ++r) {
    add_segment<kWeight, 1, kPanels>(x + r * x_stride, x_stride, weights, panel_bytes, count, sums + r * 16);
  }
}

static inline void clear_sums(int rows, std::int64_t panels, float* sums) {
  for (std::int64_t p = 0; p < panels; ++p) {
    for (std::int64_t r = 0; r < rows; ++r) store(sums + (p * kTileRows + r) * 16, zero16());
  }
}

// Decodes `count` values of k from `first` on (multiples of 32 but for plain types) to out [count,16].
template <DType kWeight>
static void decode_segment(const std::byte* panel, const PanelShape& shape, std::int64_t first,
                           std::int64_t count, float* out) {
  if constexpr (kWeight == DType::F16 || kWeight == DType::BF16) {
    for (std::int64_t k = 0; k < count; ++k) {
      store(out + k * 16, load_weights<kWeight>(panel + first * 32, k));
    }
  } else if constexpr (kWeight != DType::Q4_0 && kWeight != DType::Q4_1 && kWeight != DType::Q8_0) {
    decode_words<kWeight>(panel, shape, first, count, out);
  } else {
    const auto* scales = reinterpret_cast<const std::uint16_t*>(panel);
    const auto* minima = reinterpret_cast<const std::uint16_t*>(panel + shape.minima);
    constexpr std::int64_t kBlockBytes = kWeight == DType::Q8_0 ? 512 : 256;
    for (std::int64_t k = 0; k < count; k += 4) {
      const std::int64_t block = (first + k) / 32;
      const std::int64_t group = (first + k) % 32 / 4;
      const Vec16 scale = load_f16(scales + block * 16);
      const std::byte* quants = panel + shape.quants + block * kBlockBytes;
      Vec16i four = load_i(
          reinterpret_cast<const std::int32_t*>(quants + (kWeight == DType::Q8_0 ? group : group % 4) * 64));
      if (kWeight != DType::Q8_0 && group >= 4) four = shift_right_logical<4>(four);
      for (std::int64_t j = 0; j < 4; ++j) {
        const Vec16i quant = and_i(four, broadcast_i(kWeight == DType::Q8_0 ? 0xff : 0xf));
        four = shift_right_logical<8>(four);
        Vec16 value;
        if constexpr (kWeight == DType::Q4_1) {
          value = add(mul(scale, to_f32(quant)), load_f16(minima + block * 16));
        } else {
          value = mul(scale, to_f32(sub_i(quant, broadcast_i(kWeight == DType::Q8_0 ? 128 : 8))));
        }
        store(out + (k + j) * 16, value);
      }
    }
  }
}

// Adds the segment [k, k + count) of kPanels panels to sums. `decoded` has room for kSegmentBytes.
template <DType kWeight, int kPanels>
static void add_panels(const float* x, std::int64_t x_stride, const std::byte* panel, const PanelShape& shape,
                       std::int64_t k, std::int64_t count, int rows, float* decoded, float* sums) {
  constexpr bool kPlain = kWeight == DType::F32 || kWeight == DType::F16 || kWeight == DType::BF16;
  if constexpr (kPlain) {
    // Decoding once pays when more than one group of rows reads the result; f32 needs none.
    if (kWeight == DType::F32 || rows <= kFloatRows) {
      constexpr std::int64_t kStep = kWeight == DType::F32 ? 64 : 32;
      return add_segment_rows<kWeight, kPanels>(x + k, x_stride, panel + k * kStep, shape.bytes, count, rows,
                                                sums);
    }
  }
  if constexpr (kWeight != DType::F32) {
    for (int p = 0; p < kPanels; ++p) {
      decode_segment<kWeight>(panel + p * shape.bytes, shape, k, count, decoded + p * kSegment * 16);
    }
    add_segment_rows<DType::F32, kPanels>(x + k, x_stride, reinterpret_cast<const std::byte*>(decoded),
                                          kSegment * 16 * 4, count, rows, sums);
  }
}

// The sums of `rows` <= kTileRows rows of x (x_stride floats apart) with `panels` panels behind one another:
// sums [panels,kTileRows,16]. A segment of x goes by all panels before the next one: it stays in the cache.
template <DType kWeight>
static void matmul_tile_float(const float* x, std::int64_t x_stride, const std::byte* panel,
                              std::int64_t k_count, int rows, std::int64_t panels, float* decoded,
                              float* sums) {
  const PanelShape shape = panel_shape(kWeight, k_count);
  clear_sums(rows, panels, sums);
  for (std::int64_t k = 0; k < k_count; k += kSegment) {
    const std::int64_t count = k_count - k < kSegment ? k_count - k : kSegment;
    std::int64_t p = 0;
    for (; p + kFloatPanels <= panels; p += kFloatPanels) {
      add_panels<kWeight, kFloatPanels>(x, x_stride, panel + p * shape.bytes, shape, k, count, rows, decoded,
                                        sums + p * kTileRows * 16);
    }
    for (; p < panels; ++p) {
      add_panels<kWeight, 1>(x, x_stride, panel + p * shape.bytes, shape, k, count, rows, decoded,
                             sums + p * kTileRows * 16);
    }
  }
}

// The same for a type whose values decode_panel gives: block-quantised ones that have no lanes of quants, f8
// and f64 (rounded to f32).
static inline void matmul_tile_decoded(DType weight, const float* x, std::int64_t x_stride,
                                       const std::byte* panel, std::int64_t k_count, int rows,
                                       std::int64_t panels, float* decoded, float* sums) {
  const std::int64_t bytes = panel_shape(weight, k_count).bytes;
  clear_sums(rows, panels, sums);
  for (std::int64_t k = 0; k < k_count; k += kSegment) {
    const std::int64_t count = k_count - k < kSegment ? k_count - k : kSegment;
    for (std::int64_t p = 0; p < panels; ++p) {
      decode_panel(weight, panel + p * bytes, k, count, decoded);
      add_segment_rows<DType::F32, 1>(x + k, x_stride, reinterpret_cast<const std::byte*>(decoded), 0, count,
                                      rows, sums + p * kTileRows * 16);
    }
  }
}

HONE_INLINE void matmul_tile_float_of(DType weight, const float* x, std::int64_t x_stride,
                                      const std::byte* panel, std::int64_t k_count, int rows,
                                      std::int64_t panels, float* decoded, float* sums) {
  switch (weight) {
    case DType::F32:
      return matmul_tile_float<DType::F32>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::F16:
      return matmul_tile_float<DType::F16>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::BF16:
      return matmul_tile_float<DType::BF16>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q4_0:
      return matmul_tile_float<DType::Q4_0>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q4_1:
      return matmul_tile_float<DType::Q4_1>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q8_0:
      return matmul_tile_float<DType::Q8_0>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q2_K:
      return matmul_tile_float<DType::Q2_K>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q3_K:
      return matmul_tile_float<DType::Q3_K>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q4_K:
      return matmul_tile_float<DType::Q4_K>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q5_K:
      return matmul_tile_float<DType::Q5_K>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q6_K:
      return matmul_tile_float<DType::Q6_K>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q5_0:
      return matmul_tile_float<DType::Q5_0>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::Q5_1:
      return matmul_tile_float<DType::Q5_1>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    case DType::IQ4_NL:
      return matmul_tile_float<DType::IQ4_NL>(x, x_stride, panel, k_count, rows, panels, decoded, sums);
    default:
      return matmul_tile_decoded(weight, x, x_stride, panel, k_count, rows, panels, decoded, sums);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
