// matmul of two strided activations: against a double oracle, across ISA levels, and the order of its
// additions.
#include <cmath>

#include "vector_test_support.h"

namespace hone::test {
namespace {

class MatmulStridedTest : public PerLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, MatmulStridedTest, testing::ValuesIn(kVectorLevels), level_name);

// Rounding bound of the documented order: a chain of at most 256 fused multiply-adds rounds each partial sum,
// and each segment adds one rounding; every partial sum is at most sum |a||b|.
double bound_of(std::int64_t depth, double magnitudes) {
  const double roundings = static_cast<double>(std::min<std::int64_t>(depth, 256) + (depth + 255) / 256);
  return 1.01 * roundings * 0x1p-24 * magnitudes;
}

struct Shape2 {
  std::int64_t rows, columns, depth;
};

void check_shape(const Shape2& shape, DType dtype, bool transposed, Isa isa) {
  std::mt19937_64 random(static_cast<std::uint64_t>(shape.rows * 1000 + shape.columns * 10 + shape.depth));
  Tensor a(DType::F32, {shape.rows, shape.depth}, 1, 4);
  Tensor b(dtype, transposed ? Sizes{shape.columns, shape.depth} : Sizes{shape.depth, shape.columns}, 3,
           kernels::element_bytes(dtype));
  Tensor out(DType::F32, {shape.rows, shape.columns}, 2, 4);
  a.fill_normal(random);
  b.fill_normal(random);
  const Attributes attributes{{"transpose_b", std::int64_t{transposed ? 1 : 0}}};
  run_and_compare_levels({"matmul", attributes, {a.view(), b.view()}, {out.view()}}, out, isa);
  for (std::int64_t m = 0; m < shape.rows; ++m) {
    for (std::int64_t n = 0; n < shape.columns; ++n) {
      double sum = 0;
      double magnitudes = 0;
      for (std::int64_t k = 0; k < shape.depth; ++k) {
        const double term =
            a.get(m * shape.depth + k) * b.get(transposed ? n * shape.depth + k : k * shape.columns + n);
        sum += term;
        magnitudes += std::abs(term);
      }
      ASSERT_LE(std::abs(out.get(m * shape.columns + n) - sum), bound_of(shape.depth, magnitudes))
          << shape.rows << "x" << shape.columns << "x" << shape.depth << " at " << m << "," << n;
    }
  }
}

TEST_P(MatmulStridedTest, ShapesAgainstDouble) {
  for (const bool transposed : {false, true}) {
    for (const DType dtype : {DType::F32, DType::F16, DType::BF16}) {
      for (const std::int64_t rows : {1, 3, 4, 9, 17}) {
        for (const std::int64_t columns : {1, 15, 16, 17, 64, 65}) {
          for (const std::int64_t depth : {0, 1, 16, 33}) {
            check_shape({rows, columns, depth}, dtype, transposed, GetParam());
          }
        }
      }
      for (const std::int64_t depth : {255, 256, 257, 600}) {
        check_shape({5, 70, depth}, dtype, transposed, GetParam());
      }
      check_shape({129, 130, 40}, dtype, transposed, GetParam());
    }
  }
}

// q [B,K,G,T,E] x k [B,K,1,C,E]^T with permuted views, then p [B,K,G,T,C] x v [B,K,1,C,E]: as attention's
// primitives.
TEST_P(MatmulStridedTest, LeadingAxesBroadcastAndViewsMayBePermuted) {
  std::mt19937_64 random(7);
  Tensor q_data(DType::F32, {2, 5, 2, 3, 8});   // [B,T,K,G,E]
  Tensor k_data(DType::F16, {2, 19, 2, 1, 8});  // [B,C,K,1,E]
  Tensor out(DType::F32, {2, 2, 3, 5, 19});
  q_data.fill_normal(random);
  k_data.fill_normal(random);
  const TensorView q = q_data.permuted({0, 2, 3, 1, 4});
  const TensorView k = k_data.permuted({0, 2, 3, 1, 4});
  run_and_compare_levels({"matmul", {{"transpose_b", std::int64_t{1}}}, {q, k}, {out.view()}}, out,
                         GetParam());
  const TensorView k_columns = k_data.permuted({0, 2, 3, 4, 1});
  Tensor again(DType::F32, {2, 2, 3, 5, 19});
  run_fast({"matmul", {}, {q, k_columns}, {again.view()}}, GetParam());
  for (std::int64_t i = 0; i < product(out.sizes()); ++i) {
    const std::int64_t c = i % 19;
    const std::int64_t t = i / 19 % 5;
    const std::int64_t g = i / 95 % 3;
    const std::int64_t kv = i / 285 % 2;
    const std::int64_t b = i / 570;
    double sum = 0;
    double magnitudes = 0;
    for (std::int64_t e = 0; e < 8; ++e) {
      const double term =
          q_data.get((((b * 5 + t) * 2 + kv) * 3 + g) * 8 + e) * k_data.get(((b * 19 + c) * 2 + kv) * 8 + e);
      sum += term;
      magnitudes += std::abs(term);
    }
    ASSERT_LE(std::abs(out.get(i) - sum), bound_of(8, magnitudes)) << i;
    ASSERT_EQ(out.get(i), again.get(i)) << i;
  }
}

// 2^24, 1, -2^24, 1 sixteen times, times ones. In the documented order, one chain in index order from zero:
// 2^24 + 1 is a tie that rounds to the even 2^24, - 2^24 leaves 0, + 1 leaves 1; the next 1 + 2^24 is the
// same tie. So the answer is 1. (Sixteen partial sums or a split in halves give 2 and more, the exact sum
// is 32.)
TEST_P(MatmulStridedTest, AdditionsFollowTheDocumentedOrder) {
  constexpr double kPattern[] = {16777216.0, 1.0, -16777216.0, 1.0};
  std::mt19937_64 random(8);
  for (std::int64_t rows = 1; rows <= 17; ++rows) {
    for (std::int64_t position = 0; position < rows; ++position) {
      for (int threads = 1; threads <= 4; ++threads) {
        Tensor a(DType::F32, {rows, 64});
        Tensor b(DType::F32, {64, 130});
        Tensor out(DType::F32, {rows, 130});
        a.fill_normal(random);
        for (std::int64_t k = 0; k < 64; ++k) a.set(position * 64 + k, kPattern[k % 4]);
        for (std::int64_t i = 0; i < 64 * 130; ++i) b.set(i, 1.0);
        run_fast({"matmul", {}, {a.view(), b.view()}, {out.view()}}, GetParam(), threads);
        for (std::int64_t n = 0; n < 130; ++n)
          ASSERT_EQ(out.get(position * 130 + n), 1.0) << rows << " " << position;
      }
    }
  }
}

TEST_P(MatmulStridedTest, RowsAreIndependent) {
  std::mt19937_64 random(9);
  Tensor a(DType::F32, {70, 300});
  Tensor b(DType::BF16, {48, 300});
  Tensor all(DType::F32, {70, 48});
  a.fill_normal(random);
  b.fill_normal(random);
  const Attributes attributes{{"transpose_b", std::int64_t{1}}};
  run_fast({"matmul", attributes, {a.view(), b.view()}, {all.view()}}, GetParam());
  for (std::int64_t rows = 1; rows <= 17; ++rows) {
    for (std::int64_t first = 0; first + rows <= 70; first += 9) {
      Tensor some(DType::F32, {rows, 48});
      TensorView part = a.view();
      part.shape[0] = rows;
      part.data = a.data<float>() + first * 300;
      run_fast({"matmul", attributes, {part, b.view()}, {some.view()}}, GetParam());
      ASSERT_EQ(std::memcmp(some.data<float>(), all.data<float>() + first * 48, rows * 48 * sizeof(float)), 0)
          << rows << " rows from " << first;
    }
  }
}

}  // namespace
}  // namespace hone::test
