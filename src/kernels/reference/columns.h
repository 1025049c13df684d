// What the reference matmul and swiglu_mlp share: eight output columns at a time, each a sum in double in K
// order.
#pragma once

#include "kernels/reference/elements.h"

namespace hone::kernels::reference {

inline constexpr std::int64_t kColumns = 8;

// The right operand of a contraction: column n of K values at offset + n * n_stride, its elements k_stride
// apart; or a packed weight (Layout::Panel16), which ignores the strides.
struct ColumnSource {
  TensorView view;
  std::int64_t offset = 0;
  std::int64_t n_stride = 0;
  std::int64_t k_stride = 1;
  std::int64_t k = 0;
};

// Scratch of one tile with `matrices` right operands, all parts 64-byte aligned.
struct ColumnScratch {
  double* columns = nullptr;  // [matrices][K][8]
  double* row = nullptr;      // [K]
  float* decoded = nullptr;   // [K]
};
std::int64_t column_scratch_bytes(std::int64_t k, int matrices);
ColumnScratch column_scratch(std::byte* scratch, std::int64_t k, int matrices);

// Columns first .. first + 7 as columns [K][8]; those at or behind `n` are zeros.
void load_columns(const ColumnSource& source, std::int64_t first, std::int64_t n, float* decoded,
                  double* columns);

// out[j] = sum over k of row[k] * columns[k][j].
void dot_columns(const double* row, const double* columns, std::int64_t k, double* out);

// True for types a contraction can read on its right side.
bool is_contraction_type(DType dtype);

}  // namespace hone::kernels::reference
