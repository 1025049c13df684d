// The panel matmuls against sums in f64, between ISA levels, and between rows, batches and threads.
#include <gtest/gtest.h>

#include "matmul_test_support.h"

namespace hone::test {
namespace {

const DType kPlainTypes[] = {DType::F32, DType::F16, DType::BF16};
const DType kBlockTypes[] = {DType::Q4_0, DType::Q4_1, DType::Q8_0};

struct Shape2 {
  std::int64_t rows, n, k;
};

// All remainders of 16 columns, of the row groups and of the tile of 96 rows, and segments of 256 cut short.
std::vector<Shape2> shapes(bool blocks) {
  std::vector<Shape2> all;
  for (const std::int64_t rows : {1, 2, 3, 5, 6, 7, 11, 13}) all.push_back({rows, 33, 288});
  for (const std::int64_t n : {1, 15, 16, 17, 31, 32}) all.push_back({4, n, 64});
  all.push_back({98, 18, 544});
  all.push_back({1, 16, 0});
  all.push_back({97, 5, 32});
  if (!blocks) {
    for (const std::int64_t k : {1, 2, 5, 31, 255, 256, 257, 513}) all.push_back({3, 17, k});
  }
  return all;
}

class Matmul : public PerLevel {
 protected:
  std::mt19937_64 random_{2026};

  // The launch's level against portable, then every output against `exact` with an error of at most
  // `roundings` unit roundoffs of the sum of magnitudes: the bound of a sum of products in any order with
  // that many roundings on the longest way from a term to the result, 1.01 for their higher powers.
  template <class Exact>
  void check(const Launch& launch, Tensor& out, double roundings, const Exact& exact) {
    run_and_compare_levels(launch, out, GetParam());
    ASSERT_LT(roundings * kUnitRoundoff, 0.01);
    const TensorView view = out.view();
    for (std::int64_t r = 0; r < view.shape[0]; ++r) {
      for (std::int64_t n = 0; n < view.shape[1]; ++n) {
        const auto [value, magnitude] = exact(r, n);
        const double bound = 1.01 * roundings * kUnitRoundoff * magnitude;
        ASSERT_LE(std::fabs(out.get(r * view.shape[1] + n) - value), bound)
            << dtype_name(launch.inputs[1].dtype) << " [" << view.shape[0] << "," << launch.inputs[1].shape[1]
            << "] x [" << view.shape[1] << "] at " << r << "," << n;
      }
    }
  }
};

using Exact = std::pair<double, double>;  // the value and the sum of the magnitudes of its terms

TEST_P(Matmul, FloatIsWithinTheBoundOfItsOrder) {
  for (const bool blocks : {false, true}) {
    for (const DType dtype : blocks ? kBlockTypes : kPlainTypes) {
      for (const Shape2 s : shapes(blocks)) {
        const Weights w(dtype, s.n, s.k, random_);
        Tensor x(DType::F32, {s.rows, s.k}, 3, 4);
        Tensor out(DType::F32, {s.rows, s.n}, 5, 4);
        x.fill_normal(random_);
        const double longest = static_cast<double>(std::min<std::int64_t>(s.k, 256) + (s.k + 255) / 256);
        check(matmul_launch(x.view(), w.view(), out.view()), out, longest,
              [&](std::int64_t r, std::int64_t n) {
                Exact sum{0, 0};
                for (std::int64_t k = 0; k < s.k; ++k) {
                  const double term = x.get(r * s.k + k) * static_cast<double>(w.value(n, k));
                  sum.first += term;
                  sum.second += std::fabs(term);
                }
                return sum;
              });
      }
    }
  }
}

// The exact value of the order in matmul_int8.h: terms scale * x_scale * dot (and min * x_sum), from file
// blocks.
Exact exact_int8(const Weights& w, const Activations& x, std::int64_t r, std::int64_t n) {
  const std::int64_t blocks = w.view().shape[1] / 32;
  const std::int64_t block_bytes = dtype_row(w.view().dtype).block_bytes;
  Exact sum{0, 0};
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::byte* bytes = w.rows().data() + (n * blocks + b) * block_bytes;
    std::uint16_t scale = 0;
    std::uint16_t minimum = 0;
    std::memcpy(&scale, bytes, 2);
    std::memcpy(&minimum, bytes + 2, 2);
    const BlockQ8A& block = x.block(r, b);
    int dot = 0;
    for (int j = 0; j < 32; ++j) {
      int q = 0;
      if (w.view().dtype == DType::Q8_0) {
        q = static_cast<std::int8_t>(bytes[2 + j]);
      } else if (w.view().dtype == DType::Q4_0) {
        q = (std::to_integer<int>(bytes[2 + j % 16]) >> (j < 16 ? 0 : 4) & 15) - 8;
      } else {
        q = std::to_integer<int>(bytes[4 + j % 16]) >> (j < 16 ? 0 : 4) & 15;
      }
      dot += q * block.quants[j];
    }
    const double term = static_cast<double>(f16_to_f32(scale)) * static_cast<double>(block.scale) * dot;
    sum.first += term;
    sum.second += std::fabs(term);
    if (w.view().dtype == DType::Q4_1) {
      const double offset = static_cast<double>(f16_to_f32(minimum)) * static_cast<double>(block.sum);
      sum.first += offset;
      sum.second += std::fabs(offset);
    }
  }
  return sum;
}

TEST_P(Matmul, Int8IsWithinTheBoundOfItsOrder) {
  for (const DType dtype : kBlockTypes) {
    for (const Shape2 s : shapes(true)) {
      const Weights w(dtype, s.n, s.k, random_);
      Activations x(s.rows, s.k, normal_values(random_, s.rows * s.k), 2);
      Tensor out(DType::F32, {s.rows, s.n}, 5, 4);
      // One fma a term, and the product of the scales before the first.
      const double longest = static_cast<double>(s.k / 32 * (dtype == DType::Q4_1 ? 2 : 1) + 1);
      check(matmul_launch(x.view(), w.view(), out.view()), out, longest,
            [&](std::int64_t r, std::int64_t n) { return exact_int8(w, x, r, n); });
    }
  }
}

// Every quant at its limit with every sign: an intermediate sum of 16 bits that saturates shows here.
TEST_P(Matmul, Int8DotsAreExactAtTheLimits) {
  constexpr std::int64_t kRows = 7;
  constexpr std::int64_t kN = 20;
  constexpr std::int64_t kK = 64;
  for (const DType dtype : kBlockTypes) {
    const std::int64_t block_bytes = dtype_row(dtype).block_bytes;
    std::vector<std::byte> rows(static_cast<std::size_t>(dtype_bytes(dtype, kN * kK)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i) / (block_bytes * 2);
      const bool flip = n % 2 == 1 && i % 3 == 0;
      rows[i] = dtype == DType::Q8_0 ? std::byte{flip ? std::uint8_t{127} : std::uint8_t{128}}  // 127, -128
                                     : std::byte{flip ? std::uint8_t{0x0f} : std::uint8_t{0xff}};
    }
    const std::uint16_t one = f32_to_f16(1);
    const std::int64_t header = dtype == DType::Q4_1 ? 4 : 2;
    for (std::int64_t b = 0; b < kN * 2; ++b) {
      std::memset(rows.data() + b * block_bytes, 0, static_cast<std::size_t>(header));
      std::memcpy(rows.data() + b * block_bytes, &one, 2);
    }
    std::vector<float> values(kRows * kK);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = i / kK == 0 || i % (i / kK + 1) != 0 ? 127 : -127;
    const Weights w(dtype, kN, kK, rows);
    Activations x(kRows, kK, values);
    Tensor out(DType::F32, {kRows, kN});
    run_fast(matmul_launch(x.view(), w.view(), out.view()), GetParam());
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t n = 0; n < kN; ++n) {
        // Scales are 1: all terms are integers below 2^24.
        ASSERT_EQ(out.get(r * kN + n), exact_int8(w, x, r, n).first)
            << dtype_name(dtype) << " " << r << "," << n;
      }
    }
  }
}

// Compares the batch's rows with the same rows run alone, and as batches that start at each row.
void expect_rows_do_not_depend_on_the_batch(const TensorView& x, const Weights& w, Isa isa) {
  const std::int64_t rows = x.shape[0];
  const std::int64_t n = w.view().shape[0];
  Tensor batch(DType::F32, {rows, n});
  run_fast(matmul_launch(x, w.view(), batch.view()), isa);
  for (std::int64_t first = 0; first < rows; ++first) {
    for (const std::int64_t count : {std::int64_t{1}, std::min<std::int64_t>(rows - first, 1 + first % 17)}) {
      Tensor part(DType::F32, {count, n});
      run_fast(matmul_launch(row_range(x, first, count), w.view(), part.view()), isa);
      ASSERT_EQ(std::memcmp(part.data<float>(), batch.data<float>() + first * n,
                            static_cast<std::size_t>(count * n) * 4),
                0)
          << dtype_name(w.view().dtype) << ": rows " << first << " to " << first + count - 1 << " of "
          << rows;
    }
  }
  for (int threads = 2; threads <= 4; ++threads) {
    Tensor again(DType::F32, {rows, n});
    run_fast(matmul_launch(x, w.view(), again.view()), isa, threads);
    ASSERT_EQ(again.storage(), batch.storage()) << threads << " threads";
  }
}

TEST_P(Matmul, ARowHasTheSameBitsInEveryBatchOnEveryThreadCount) {
  constexpr std::int64_t kRows = 65;
  constexpr std::int64_t kK = 544;
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    const Weights w(dtype, 35, kK, random_);
    const std::vector<float> values = normal_values(random_, kRows * kK);
    Tensor x(DType::F32, {kRows, kK});
    std::memcpy(x.data<float>(), values.data(), values.size() * 4);
    expect_rows_do_not_depend_on_the_batch(x.view(), w, GetParam());
    if (dtype_row(dtype).block_elements == 1) continue;
    Activations quantised(kRows, kK, values);
    expect_rows_do_not_depend_on_the_batch(quantised.view(), w, GetParam());
  }
}

// Weights that decode to 1 everywhere. q4_1 is 0 * nibble + 1: its int8 sum is that of x_sum.
std::vector<std::byte> ones(DType dtype, std::int64_t count) {
  std::vector<std::byte> rows(static_cast<std::size_t>(dtype_bytes(dtype, count)));
  const std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
  if (dtype_row(dtype).block_elements == 1) {
    EXPECT_TRUE(encode_row(dtype, values.data(), count, rows.data()).ok());
    return rows;
  }
  const std::uint16_t one = f32_to_f16(1);
  const std::int64_t block_bytes = dtype_row(dtype).block_bytes;
  for (std::int64_t b = 0; b < count / 32; ++b) {
    std::byte* block = rows.data() + b * block_bytes;
    std::memset(block, dtype == DType::Q4_0 ? 0x99 : 1, static_cast<std::size_t>(block_bytes));
    if (dtype == DType::Q4_1) std::memset(block, 0, 2);
    std::memcpy(block + (dtype == DType::Q4_1 ? 2 : 0), &one, 2);
  }
  return rows;
}

// x = 2^24, 1, -2^24, 1, ... (K = 64), all weights 1. The true sum is 32.
// - f32: one chain in the order of k. 2^24 + 1 = 2^24 (a tie, to even), then 0, then 1; and so on from 1, for
//   1 + 2^24 is 2^24 as well: the answer is 1.
// - int8: the scale is 2^24 / 127, so the quants are 127, 0, -127, 0 and the dot is 0: the answer is 0. q4_1
//   (0 * nibble + 1) adds the blocks' x_sum, in order.
TEST_P(Matmul, OrderOfAdditionsIsTheStatedOne) {
  constexpr std::int64_t kK = 64;
  constexpr std::int64_t kN = 19;
  const float pattern[] = {0x1p24F, 1, -0x1p24F, 1};
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    const Weights w(dtype, kN, kK, ones(dtype, kN * kK));
    for (std::int64_t rows = 1; rows <= 17; ++rows) {
      for (std::int64_t at = 0; at < rows; ++at) {
        std::vector<float> values = normal_values(random_, rows * kK);
        for (std::int64_t k = 0; k < kK; ++k) values[static_cast<std::size_t>(at * kK + k)] = pattern[k % 4];
        Tensor x(DType::F32, {rows, kK});
        std::memcpy(x.data<float>(), values.data(), values.size() * 4);
        Tensor out(DType::F32, {rows, kN});
        const int threads = 1 + static_cast<int>((rows + at) % 4);
        run_fast(matmul_launch(x.view(), w.view(), out.view()), GetParam(), threads);
        for (std::int64_t n = 0; n < kN; ++n) ASSERT_EQ(out.get(at * kN + n), 1.0) << dtype_name(dtype);
        if (dtype_row(dtype).block_elements == 1) continue;
        Activations quantised(rows, kK, values);
        Launch quantise{"quantize_q8a", {}, {x.view()}, {quantised.view()}};
        run_fast(quantise, GetParam(), threads);
        run_fast(matmul_launch(quantised.view(), w.view(), out.view()), GetParam(), threads);
        const float sums = quantised.block(at, 0).sum + quantised.block(at, 1).sum;
        const double expected = dtype == DType::Q4_1 ? static_cast<double>(sums) : 0.0;
        for (std::int64_t n = 0; n < kN; ++n) ASSERT_EQ(out.get(at * kN + n), expected) << dtype_name(dtype);
      }
    }
  }
}

// A 2^24, then a 1, then a -2^24 in the order of k. Where the 1 is added to 2^24 it is lost (a tie, to even);
// where it is added to -2^24 it is kept. So each answer tells which values share a segment and in what order
// segments are added.
TEST_P(Matmul, SegmentsOf256AreAddedInOrder) {
  constexpr std::int64_t kK = 3 * 256;
  const Weights w(DType::F32, 16, kK, ones(DType::F32, 16 * kK));
  struct Case {
    std::int64_t large, one, minus_large;
    double expected;
  };
  const Case cases[] = {
      {0, 200, 255, 0},    // one segment
      {0, 255, 256, 0},    // the 1 in the first segment, at its end
      {255, 256, 257, 1},  // the 1 in the second segment, at its start
      {17, 456, 466, 1},   // 2^24 + (1 - 2^24)
      {17, 456, 515, 0},   // (2^24 + 1) - 2^24
  };
  for (const Case& c : cases) {
    Tensor x(DType::F32, {1, kK});
    x.set(c.large, 0x1p24);
    x.set(c.one, 1);
    x.set(c.minus_large, -0x1p24);
    Tensor out(DType::F32, {1, 16});
    run_fast(matmul_launch(x.view(), w.view(), out.view()), GetParam());
    EXPECT_EQ(out.get(0), c.expected) << c.large << " " << c.one << " " << c.minus_large;
  }
}

TEST_P(Matmul, RefusesWhatItCannotCompute) {
  const Weights w(DType::Q8_0, 16, 64, random_);
  Tensor x(DType::F32, {2, 64});
  Tensor out(DType::F32, {2, 16});
  EXPECT_NE(find_kernel(matmul_launch(x.view(), w.view(), out.view()), GetParam()), nullptr);
  Launch not_transposed = matmul_launch(x.view(), w.view(), out.view());
  not_transposed.attributes.set("transpose_b", std::int64_t{0});
  EXPECT_EQ(find_kernel(not_transposed, GetParam()), nullptr);
  TensorView f16_out = out.view();
  f16_out.dtype = DType::F16;
  EXPECT_EQ(find_kernel(matmul_launch(x.view(), w.view(), f16_out), GetParam()), nullptr);
  const Weights plain(DType::F32, 16, 64, random_);
  Activations quantised(2, 64, normal_values(random_, 128));
  EXPECT_EQ(find_kernel(matmul_launch(quantised.view(), plain.view(), out.view()), GetParam()), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Levels, Matmul, testing::ValuesIn(kIsaLevels), level_name);

}  // namespace
}  // namespace hone::test
