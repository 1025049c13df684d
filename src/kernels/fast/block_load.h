// Blocks of an f32, f16, bf16 or q8_0 matrix to f32 scratch, straight or transposed. What lies past the block
// is zero. Rows of q8_0 are whole blocks, and d * q is exact: 11 bits by 8.
#pragma once

#include <cstdint>

#include "kernels/fast/axes.h"
#include "kernels/fast/transpose.h"
#include "kernels/fast/vec16.h"
#include "tensor/dtype.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

inline constexpr std::int64_t kBlockWidth = 64;  // columns of a transposed block

// A matrix in memory: element (i, j) at data + (i * row + j * column) elements.
struct Source {
  const char* data = nullptr;
  DType dtype = DType::F32;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

// Of `elements` elements; of q8_0, a multiple of 32.
HONE_INLINE std::int64_t source_bytes(DType dtype, std::int64_t elements) {
  return dtype == DType::F32 ? 4 * elements : dtype == DType::Q8_0 ? elements / 32 * 34 : 2 * elements;
}

HONE_INLINE const char* element_at(const Source& source, std::int64_t i, std::int64_t j) {
  return source.data + source_bytes(source.dtype, i * source.row + j * source.column);
}

// Elements j .. j+15 of a contiguous row, j a multiple of 16.
template <DType kType>
HONE_INLINE Vec16 sixteen_of(const char* row, std::int64_t j) {
  if constexpr (kType == DType::F32) return load(reinterpret_cast<const float*>(row) + j);
  if constexpr (kType == DType::F16) return load_f16(reinterpret_cast<const std::uint16_t*>(row) + j);
  if constexpr (kType == DType::BF16) return load_bf16(reinterpret_cast<const std::uint16_t*>(row) + j);
  const char* block = row + source_bytes(DType::Q8_0, j / 32 * 32);
  const Vec16 quants = to_f32(load_i8(reinterpret_cast<const std::int8_t*>(block + 2) + j % 32));
  return mul(broadcast_f16(block), quants);
}

// The first `count` < 16 of them, and zeros. Never of q8_0.
template <DType kType>
HONE_INLINE Vec16 some_of(const char* row, std::int64_t j, std::int64_t count) {
  const int lanes = static_cast<int>(count);
  if constexpr (kType == DType::F32) return load_partial(reinterpret_cast<const float*>(row) + j, lanes);
  const std::uint16_t* halves = reinterpret_cast<const std::uint16_t*>(row) + j;
  if constexpr (kType == DType::F16) return load_f16_partial(halves, lanes);
  return load_bf16_partial(halves, lanes);
}

template <DType kType>
HONE_INLINE Vec16 load_up_to_sixteen(const char* row, std::int64_t j, std::int64_t count) {
  return count >= 16 ? sixteen_of<kType>(row, j) : some_of<kType>(row, j, count);
}

template <DType kType>
static inline void load_transposed_of(const Source& source, std::int64_t rows, std::int64_t columns,
                                      float* out) {
  const std::int64_t row_bytes = source_bytes(kType, source.row);
  for (std::int64_t i = 0; i < kBlockWidth; i += 16) {
    const char* from = source.data + i * row_bytes;
    for (std::int64_t j = 0; j < columns; j += 16) {
      Vec16 block[16];
      if (i + 16 <= rows && j + 16 <= columns) {
        for (std::int64_t k = 0; k < 16; ++k) block[k] = sixteen_of<kType>(from + k * row_bytes, j);
      } else {
        for (std::int64_t k = 0; k < 16; ++k) {
          block[k] =
              i + k < rows ? load_up_to_sixteen<kType>(from + k * row_bytes, j, columns - j) : zero16();
        }
      }
      store_transposed(block, out + j * kBlockWidth + i, kBlockWidth);
    }
  }
}

// out[j * kBlockWidth + i] = source(i, j) for i < rows <= kBlockWidth and j < columns, with source.column
// == 1. `out` has kBlockWidth columns and `columns` rounded up to 16 rows.
static inline void load_transposed(const Source& source, std::int64_t rows, std::int64_t columns,
                                   float* out) {
  switch (source.dtype) {
    case DType::F32:
      return load_transposed_of<DType::F32>(source, rows, columns, out);
    case DType::F16:
      return load_transposed_of<DType::F16>(source, rows, columns, out);
    case DType::Q8_0:
      return load_transposed_of<DType::Q8_0>(source, rows, columns, out);
    default:
      return load_transposed_of<DType::BF16>(source, rows, columns, out);
  }
}

template <DType kType>
static inline void load_straight_of(const Source& source, std::int64_t rows, std::int64_t columns, float* out,
                                    std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const char* row = source.data + source_bytes(kType, i * source.row);
    for (std::int64_t j = 0; j < columns; j += 16)
      store(out + i * stride + j, load_up_to_sixteen<kType>(row, j, columns - j));
  }
}

// out[i * stride + j] = source(i, j) for i < rows and j < columns, with source.column == 1; zeros up to the
// next multiple of 16 columns.
static inline void load_straight(const Source& source, std::int64_t rows, std::int64_t columns, float* out,
                                 std::int64_t stride) {
  switch (source.dtype) {
    case DType::F32:
      return load_straight_of<DType::F32>(source, rows, columns, out, stride);
    case DType::F16:
      return load_straight_of<DType::F16>(source, rows, columns, out, stride);
    case DType::Q8_0:
      return load_straight_of<DType::Q8_0>(source, rows, columns, out, stride);
    default:
      return load_straight_of<DType::BF16>(source, rows, columns, out, stride);
  }
}

// load_straight for any strides; never of q8_0.
static inline void load_scattered(const Source& source, std::int64_t rows, std::int64_t columns, float* out,
                                  std::int64_t stride) {
  const auto one = [&](std::int64_t i, std::int64_t j) {
    const char* from = element_at(source, i, j);
    if (source.dtype == DType::F32) return some_of<DType::F32>(from, 0, 1);
    if (source.dtype == DType::F16) return some_of<DType::F16>(from, 0, 1);
    return some_of<DType::BF16>(from, 0, 1);
  };
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < blocks_of(columns, 16) * 16; ++j)
      store_partial(out + i * stride + j, j < columns ? one(i, j) : zero16(), 1);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
