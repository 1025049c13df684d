// Weight matrices in file layout and packed in panels, activations of q8a, and launches of the matmul family.
#pragma once

#include <cmath>
#include <memory>

#include "tensor/panel_layout.h"
#include "vector_test_support.h"

namespace hone::test {

inline std::vector<float> normal_values(std::mt19937_64& random, std::int64_t count, double deviation = 1.0) {
  std::normal_distribution<double> normal(0.0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(normal(random));
  return values;
}

// A matrix [N,K]: encoded rows, the panels made of them, and the decoded values.
class Weights {
 public:
  Weights(DType dtype, std::int64_t n, std::int64_t k, std::mt19937_64& random)
      : Weights(dtype, n, k, encode(dtype, normal_values(random, n * k))) {}

  Weights(DType dtype, std::int64_t n, std::int64_t k, std::vector<std::byte> rows)
      : rows_(std::move(rows)), packed_(static_cast<std::size_t>(panel_bytes(dtype, n, k)) + 64) {
    const auto address = reinterpret_cast<std::uintptr_t>(packed_.data());
    view_.data = packed_.data() + (64 - address % 64) % 64;
    view_.dtype = dtype;
    view_.layout = Layout::Panel16;
    view_.rank = 2;
    view_.shape[0] = n;
    view_.shape[1] = k;
    const std::int64_t row_bytes = dtype_bytes(dtype, k);
    for (std::int64_t first = 0; first < n; first += kPanelColumns) {
      pack_panel(dtype, rows_.data() + first * row_bytes, std::min(kPanelColumns, n - first), k,
                 static_cast<std::byte*>(view_.data) + first / kPanelColumns * panel_shape(dtype, k).bytes);
    }
    values_.resize(static_cast<std::size_t>(n * k));
    EXPECT_TRUE(decode_row(dtype, rows_.data(), n * k, values_.data()).ok());
  }

  const TensorView& view() const { return view_; }
  // The rows as they lie in a file.
  TensorView strided() {
    TensorView view = view_;
    view.layout = Layout::Strided;
    view.data = rows_.data();
    view.strides[0] = view.shape[1];
    view.strides[1] = 1;
    return view;
  }
  const std::vector<std::byte>& rows() const { return rows_; }
  float value(std::int64_t n, std::int64_t k) const {
    return values_[static_cast<std::size_t>(n * view_.shape[1] + k)];
  }

 private:
  static std::vector<std::byte> encode(DType dtype, const std::vector<float>& values) {
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<std::byte> rows(static_cast<std::size_t>(dtype_bytes(dtype, count)));
    EXPECT_TRUE(encode_row(dtype, values.data(), count, rows.data()).ok());
    return rows;
  }

  std::vector<std::byte> rows_;
  std::vector<std::byte> packed_;
  std::vector<float> values_;
  TensorView view_;
};

// Rows of q8a, `padding` blocks apart, made of f32 values.
class Activations {
 public:
  Activations(std::int64_t rows, std::int64_t k, const std::vector<float>& values, std::int64_t padding = 0)
      : row_blocks_(k / 32 + padding), blocks_(static_cast<std::size_t>(rows * row_blocks_)) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t b = 0; b < k / 32; ++b) {
        blocks_[static_cast<std::size_t>(r * row_blocks_ + b)] =
            encode_q8a_block(values.data() + r * k + b * 32);
      }
    }
    view_.dtype = DType::Q8A;
    view_.rank = 2;
    view_.shape[0] = rows;
    view_.shape[1] = k;
    view_.strides[0] = row_blocks_ * 32;
    view_.strides[1] = 1;
  }
  const TensorView& view() {
    view_.data = blocks_.data();
    return view_;
  }
  const BlockQ8A& block(std::int64_t row, std::int64_t b) const {
    return blocks_[static_cast<std::size_t>(row * row_blocks_ + b)];
  }

 private:
  std::int64_t row_blocks_;
  std::vector<BlockQ8A> blocks_;
  TensorView view_;
};

inline Launch matmul_launch(const TensorView& x, const TensorView& w, const TensorView& out) {
  return Launch{"matmul", Attributes{{"transpose_b", std::int64_t{1}}}, {x, w}, {out}};
}

// Rows first .. first + count - 1 of a matrix.
inline TensorView row_range(TensorView view, std::int64_t first, std::int64_t count) {
  view.data = static_cast<std::byte*>(view.data) + dtype_bytes(view.dtype, first * view.strides[0]);
  view.shape[0] = count;
  return view;
}

inline constexpr double kUnitRoundoff = 0x1p-24;

}  // namespace hone::test
