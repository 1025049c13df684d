// Blocks of an f32, f16 or bf16 matrix to f32 scratch, straight or transposed. What lies past the block is
// zero.
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

HONE_INLINE std::int64_t source_bytes(DType dtype) {
  return dtype == DType::F32 ? 4 : 2;
}

HONE_INLINE const char* element_at(const Source& source, std::int64_t i, std::int64_t j) {
  return source.data + (i * source.row + j * source.column) * source_bytes(source.dtype);
}

// `count` <= 16 consecutive elements.
HONE_INLINE Vec16 load_sixteen(DType dtype, const char* from, std::int64_t count) {
  const int lanes = static_cast<int>(count);
  if (dtype == DType::F32) {
    const float* values = reinterpret_cast<const float*>(from);
    return lanes == 16 ? load(values) : load_partial(values, lanes);
  }
  const std::uint16_t* halves = reinterpret_cast<const std::uint16_t*>(from);
  if (dtype == DType::F16) return lanes == 16 ? load_f16(halves) : load_f16_partial(halves, lanes);
  return lanes == 16 ? load_bf16(halves) : load_bf16_partial(halves, lanes);
}

// out[j * kBlockWidth + i] = source(i, j) for i < rows <= kBlockWidth and j < columns, with source.column
// == 1. `out` has kBlockWidth columns and `columns` rounded up to 16 rows.
inline void load_transposed(const Source& source, std::int64_t rows, std::int64_t columns, float* out) {
  for (std::int64_t i = 0; i < kBlockWidth; i += 16) {
    for (std::int64_t j = 0; j < columns; j += 16) {
      Vec16 block[16];
      for (std::int64_t k = 0; k < 16; ++k) {
        const bool inside = i + k < rows;
        block[k] = inside ? load_sixteen(source.dtype, element_at(source, i + k, j), smaller(16, columns - j))
                          : zero16();
      }
      store_transposed(block, out + j * kBlockWidth + i, kBlockWidth);
    }
  }
}

// out[i * stride + j] = source(i, j) for i < rows and j < columns, with source.column == 1; zeros up to the
// next multiple of 16 columns.
inline void load_straight(const Source& source, std::int64_t rows, std::int64_t columns, float* out,
                          std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; j += 16) {
      store(out + i * stride + j,
            load_sixteen(source.dtype, element_at(source, i, j), smaller(16, columns - j)));
    }
  }
}

// load_straight for any strides.
inline void load_scattered(const Source& source, std::int64_t rows, std::int64_t columns, float* out,
                           std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < blocks_of(columns, 16) * 16; ++j) {
      const Vec16 value = j < columns ? load_sixteen(source.dtype, element_at(source, i, j), 1) : zero16();
      store_partial(out + i * stride + j, value, 1);
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
