// How the reference kernels read and write elements of views: runs along one axis, converted to double or
// int64.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "kernels/kernel.h"
#include "tensor/view.h"

namespace hone::kernels::reference {

// True for the types that elementwise kernels read and write: not block-quantised, not f8, not u64.
bool is_plain(DType dtype);
// f64, f32, f16, bf16.
bool is_real(DType dtype);

// Answers for Kernel::accepts; empty if all is well.
std::string_view needs_strided(
    const Signature& signature);                           // every operand Layout::Strided, rank <= kMaxRank
std::string_view needs_plain(const Signature& signature);  // and of plain types
// The same, but the output may be rows of whole q8a blocks.
std::string_view needs_plain_inputs(const Signature& signature);

std::int64_t element_count(const TensorView& view);

// The view without its last `axes` axes.
TensorView without_last(TensorView view, int axes);

// Element number `linear` (row-major) of `shape`, as an offset in elements of `view`, whose axes align with
// those of `shape` at the right; an axis of extent 1 repeats.
std::int64_t broadcast_offset(const TensorView& view, const TensorView& shape, std::int64_t linear);
// The step of that offset along the last axis of `shape`.
std::int64_t broadcast_stride(const TensorView& view, const TensorView& shape);

inline std::int64_t offset_of(const TensorView& view, std::int64_t linear) {
  return broadcast_offset(view, view, linear);
}
inline std::int64_t last_extent(const TensorView& view) {
  return view.rank == 0 ? 1 : view.shape[view.rank - 1];
}
inline std::int64_t last_stride(const TensorView& view) {
  return view.rank == 0 ? 1 : view.strides[view.rank - 1];
}
inline std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// `count` elements from `offset`, `stride` apart. Real types are read exactly. Block-quantised types: stride
// 1, offset and count whole blocks.
void load_reals(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                double* out);
void load_integers(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                   std::int64_t* out);
// Element number `linear` of an integer view.
inline std::int64_t integer_at(const TensorView& view, std::int64_t linear) {
  std::int64_t value = 0;
  load_integers(view, offset_of(view, linear), 1, 1, &value);
  return value;
}
// Rounds once, to nearest even; to an integer type: truncated, saturated, NaN gives 0; to q8a and
// q8_0: to f32 and then to blocks, stride 1, offset and count whole blocks.
void store_reals(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                 const double* values);
// Row `row` of an op whose input rows have `rank - 1` axes in front: as store_reals, or where the view is q8a
// and has one axis more than `rank`, [..,2,K], in two terms.
void store_row(const TensorView& view, int rank, std::int64_t row, std::int64_t count, const double* values);
void store_integers(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                    const std::int64_t* values);

// Rounded to the real type `dtype`, in one rounding.
double round_to(double value, DType dtype);
// Modulo 2^n for an integer type of n bits; 0 or 1 for bool.
std::int64_t wrap_to(std::int64_t value, DType dtype);
std::int64_t truncate_to(double value, DType dtype);

// Elements [begin, end) of `from`, in its row-major order, to the same places of `to`, which has as many
// elements but perhaps another shape. Same dtype. Block-quantised views: each counted in blocks, see
// in_blocks.
void copy_elements(const TensorView& from, const TensorView& to, std::int64_t begin, std::int64_t end);

// A block-quantised view as a view of blocks: last extent and all strides divided by the block size. Others
// unchanged.
TensorView in_blocks(TensorView view);

// Calls f(first, count) for the runs of at most `longest` elements that make up [begin, end) of `shape`'s
// row-major order; no run crosses the end of a row.
template <class F>
void for_each_run(const TensorView& shape, std::int64_t begin, std::int64_t end, std::int64_t longest,
                  F&& f) {
  const std::int64_t row = last_extent(shape);
  while (begin < end) {
    const std::int64_t count = std::min({longest, end - begin, row - begin % row});
    f(begin, count);
    begin += count;
  }
}

}  // namespace hone::kernels::reference
