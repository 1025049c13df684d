// Int8 matmuls of the formats whose numbers a kernel takes out of words (kernels/fast/dot_format.h): blocks
// of random bits whose f16 values are 1, so that every scale, minimum and weight is a whole number, times x
// of whole numbers whose scale is 1. All sums stay below 2^24 in any order: every output is exact.
#include <gtest/gtest.h>

#include "matmul_test_support.h"

namespace hone::test {
namespace {

// Of each block of the file: its bytes, and where its f16 values lie.
struct WordFormat {
  DType dtype;
  std::int64_t block_bytes;
  std::vector<std::int64_t> halves;
};

const std::vector<WordFormat>& formats() {
  static const std::vector<WordFormat> all{{DType::Q5_0, 22, {0}},
                                           {DType::Q5_1, 24, {0, 2}},
                                           {DType::Q4_K, 144, {0, 2}},
                                           {DType::Q5_K, 176, {0, 2}},
                                           {DType::Q6_K, 210, {208}}};
  return all;
}

Weights whole_weights(const WordFormat& format, std::int64_t n, std::int64_t k, std::mt19937_64& random) {
  std::vector<std::byte> rows(static_cast<std::size_t>(dtype_bytes(format.dtype, n * k)));
  for (std::byte& byte : rows) byte = static_cast<std::byte>(random());
  const std::uint16_t one = f32_to_f16(1);
  for (std::size_t at = 0; at < rows.size(); at += static_cast<std::size_t>(format.block_bytes)) {
    for (const std::int64_t half : format.halves)
      std::memcpy(rows.data() + at + static_cast<std::size_t>(half), &one, 2);
  }
  return {format.dtype, n, k, rows};
}

// 127 in front of each block makes its scale 1; the others are at most 7: with weights of at most 32 * 128 a
// sum over 256 is at most 256 / 32 * (127 + 31 * 7) * 32 * 128 < 2^24.
std::vector<float> whole_values(std::int64_t count, std::mt19937_64& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i % 32 == 0 ? 127.0F : static_cast<float>(random() % 15) - 7.0F;
  return values;
}

class MatmulOfNumbers : public PerLevel {
 protected:
  std::mt19937_64 random_{2026};
};

TEST_P(MatmulOfNumbers, IsExact) {
  constexpr std::int64_t kK = 256;
  for (const WordFormat& format : formats()) {
    // One and several panels, the last cut short; all remainders of the rows.
    for (const auto& [rows, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 16}, {1, 33}, {2, 50}, {3, 16}, {5, 17}, {6, 32}, {7, 40}, {13, 130}, {50, 35}}) {
      const Weights w = whole_weights(format, n, kK, random_);
      const std::vector<float> values = whole_values(rows * kK, random_);
      Activations x(rows, kK, values);
      Tensor out(DType::F32, {rows, n});
      run_fast(matmul_launch(x.view(), w.view(), out.view()), GetParam());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < n; ++c) {
          double sum = 0;
          for (std::int64_t k = 0; k < kK; ++k)
            sum += static_cast<double>(values[static_cast<std::size_t>(r * kK + k)]) *
                   static_cast<double>(w.value(c, k));
          ASSERT_LT(std::fabs(sum), 0x1p24);
          ASSERT_EQ(out.get(r * n + c), sum)
              << dtype_name(format.dtype) << " [" << rows << "] x [" << n << "] at " << r << "," << c;
        }
      }
    }
  }
}

// Values of any size: the bits of one level are those of portable, whatever the batch and the threads.
TEST_P(MatmulOfNumbers, HasTheSameBitsOnEveryLevelInEveryBatch) {
  constexpr std::int64_t kRows = 21;
  constexpr std::int64_t kN = 35;
  constexpr std::int64_t kK = 512;
  for (const WordFormat& format : formats()) {
    const Weights w(format.dtype, kN, kK, random_);
    Activations x(kRows, kK, normal_values(random_, kRows * kK), 2);
    Tensor batch(DType::F32, {kRows, kN}, 5, 4);
    run_and_compare_levels(matmul_launch(x.view(), w.view(), batch.view()), batch, GetParam());
    for (std::int64_t first = 0; first < kRows; ++first) {
      const std::int64_t count = std::min(kRows - first, 1 + first % 8);
      Tensor part(DType::F32, {count, kN});
      run_fast(matmul_launch(row_range(x.view(), first, count), w.view(), part.view()), GetParam(),
               1 + static_cast<int>(first % 3));
      for (std::int64_t i = 0; i < count * kN; ++i)
        ASSERT_EQ(part.get(i), batch.get(first * kN + i)) << dtype_name(format.dtype) << " row " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, MatmulOfNumbers, testing::ValuesIn(kIsaLevels), level_name);

}  // namespace
}  // namespace hone::test
