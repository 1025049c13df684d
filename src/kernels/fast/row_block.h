// The inner loop that attention and the strided matmul share: rows of `a` times a block of `b` whose lanes
// are output columns. One output element is one chain of fused multiply-adds in index order, whatever the
// number of rows and groups computed beside it.
#pragma once

#include <cstdint>

#include "kernels/fast/list.h"
#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Rows taken at once. Four rows of a two-register Vec16 fill the latency of two FMA units, as do eight rows
// of a one-register one; the bits are the same.
inline constexpr int kRowBlock = kThisIsa >= Isa::Avx512 ? 8 : 4;
// 16-column groups taken at once where there is one row.
inline constexpr int kGroupBlock = 4;
// Rows and groups of a step that takes several of both: 4 x 4 sums fill 16 of 32 registers and load 8 vectors
// for 16 products, where 8 x 1 load 9 for 8 and two loads a cycle bound them.
inline constexpr int kBlockRows = 4;
inline constexpr int kBlockGroups = kThisIsa >= Isa::Avx512 ? 4 : 1;

// A matrix of f32: element (i, j) at data[i * row + j * column].
struct Operand {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

template <int kRows, int kGroups>
struct Accumulators {
  Vec16 at[kRows][kGroups];
};

template <int kRows, int kGroups>
HONE_INLINE void clear(Accumulators<kRows, kGroups>& sums) {
  for (int row = 0; row < kRows; ++row) {
    for (int group = 0; group < kGroups; ++group) sums.at[row][group] = zero16();
  }
}

// Sixteen columns of row i of the right operand, from column 16 * group on.
HONE_INLINE Vec16 columns_at(const Operand& b, std::int64_t i, int group) {
  return load(b.data + i * b.row + 16 * group);
}

// sums[r][j] = fma(a[r][i], b[i][j], sums[r][j]) for i = 0 .. length-1, in this order. b's rows are
// contiguous; what they are made of is for columns_at to say.
template <int kRows, int kGroups, class Columns = Operand>
HONE_INLINE void multiply(const Operand& a, const Columns& b, std::int64_t length,
                          Accumulators<kRows, kGroups>& sums) {
  Accumulators<kRows, kGroups> local = sums;
  for (std::int64_t i = 0; i < length; ++i) {
    Vec16 columns[kGroups];
    for (int group = 0; group < kGroups; ++group) columns[group] = columns_at(b, i, group);
    for (int row = 0; row < kRows; ++row) {
      const Vec16 factor = broadcast(a.data[row * a.row + i * a.column]);
      for (int group = 0; group < kGroups; ++group) {
        local.at[row][group] = fma(factor, columns[group], local.at[row][group]);
      }
    }
  }
  sums = local;
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
