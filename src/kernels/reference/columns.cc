#include "kernels/reference/columns.h"

#include <cstring>

#include "tensor/block_formats.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::reference {
namespace {

std::int64_t align(std::int64_t bytes) {
  return ceil_divide(bytes, 64) * 64;
}

}  // namespace

std::int64_t column_scratch_bytes(std::int64_t k, int matrices) {
  return align(k * kColumns * matrices * 8) + align(k * 8) + align(k * 4);
}

ColumnScratch column_scratch(std::byte* scratch, std::int64_t k, int matrices) {
  std::byte* row = scratch + align(k * kColumns * matrices * 8);
  return {reinterpret_cast<double*>(scratch), reinterpret_cast<double*>(row),
          reinterpret_cast<float*>(row + align(k * 8))};
}

void load_columns(const ColumnSource& source, std::int64_t first, std::int64_t n, float* decoded,
                  double* columns) {
  const TensorView& view = source.view;
  const bool packed = view.layout == Layout::Panel16;
  const bool rows = source.k_stride == 1 && view.dtype != DType::F64;
  for (std::int64_t j = 0; j < kColumns; ++j) {
    if (first + j >= n) {
      for (std::int64_t k = 0; k < source.k; ++k) columns[k * kColumns + j] = 0;
      continue;
    }
    const std::int64_t offset = source.offset + (first + j) * source.n_stride;
    if (packed || rows) {
      if (packed) {
        unpack_column(view.dtype, view.data, first + j, source.k, decoded);
      } else {
        const std::byte* at = static_cast<const std::byte*>(view.data) + dtype_bytes(view.dtype, offset);
        (void)decode_row(view.dtype, at, source.k, decoded);
      }
      for (std::int64_t k = 0; k < source.k; ++k) columns[k * kColumns + j] = static_cast<double>(decoded[k]);
      continue;
    }
    constexpr std::int64_t kRun = 256;
    double values[kRun];
    for (std::int64_t begin = 0; begin < source.k; begin += kRun) {
      const std::int64_t count = std::min(kRun, source.k - begin);
      load_reals(view, offset + begin * source.k_stride, source.k_stride, count, values);
      for (std::int64_t i = 0; i < count; ++i) columns[(begin + i) * kColumns + j] = values[i];
    }
  }
}

void dot_columns(const double* row, const double* columns, std::int64_t k, double* out) {
  // Lanes are columns, so each sum still runs in K order. Left to itself, GCC 12 makes K the lanes and
  // shuffles: a quarter of the speed.
  using Pair [[gnu::vector_size(16), gnu::may_alias]] = double;
  const auto* pairs = reinterpret_cast<const Pair*>(columns);
  Pair sums[kColumns / 2] = {};
  for (std::int64_t i = 0; i < k; ++i) {
    const Pair value = {row[i], row[i]};
    sums[0] += value * pairs[i * 4];
    sums[1] += value * pairs[i * 4 + 1];
    sums[2] += value * pairs[i * 4 + 2];
    sums[3] += value * pairs[i * 4 + 3];
  }
  for (std::int64_t j = 0; j < kColumns; ++j) out[j] = sums[j / 2][j % 2];
}

bool is_contraction_type(DType dtype) {
  return dtype_row(dtype).is_float;
}

}  // namespace hone::kernels::reference
