// Products of bf16: every level gives the bits of the order of additions that fast/matmul_bf16.h states, for
// every count of rows, with values of every size.
#include <cfloat>
#include <cstring>

#include "matmul_test_support.h"
#include "tensor/projection.h"

namespace hone::test {
namespace {

class MatmulBf16 : public PerLevel {
 protected:
  std::mt19937_64 random_{20261201};
};

float flushed(float value) {
  return std::fabs(value) < FLT_MIN ? std::copysign(0.0F, value) : value;
}

// The stated order, in plain floats.
float product(const TensorView& x, const Weights& w, std::int64_t row, std::int64_t n) {
  const auto* from = static_cast<const std::uint16_t*>(x.data) + row * x.strides[0];
  float acc = 0;
  for (std::int64_t block = 0; block < x.shape[1]; block += 32) {
    float chain[2] = {0, 0};
    for (std::int64_t i = 0; i < 32; ++i) {
      chain[i % 2] = flushed(
          std::fma(flushed(bf16_to_f32(from[block + i])), flushed(w.value(n, block + i)), chain[i % 2]));
    }
    acc = flushed(acc + flushed(chain[0] + chain[1]));
  }
  return acc;
}

void expect_stated_order(Tensor& x, const Weights& w, Isa isa, int threads = 1) {
  const std::int64_t rows = x.view().shape[0];
  const std::int64_t n = w.view().shape[0];
  Tensor out(DType::F32, {rows, n}, 5, 4);
  run_fast(matmul_launch(x.view(), w.view(), out.view()), isa, threads);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < n; ++c) {
      const float expected = product(x.view(), w, r, c);
      const auto actual = static_cast<float>(out.get(r * n + c));
      // The payload of a NaN is no part of the law.
      if (std::isnan(expected) && std::isnan(actual)) continue;
      ASSERT_EQ(std::memcmp(&expected, &actual, 4), 0)
          << rows << " rows, K " << x.view().shape[1] << ": row " << r << ", column " << c << ": " << actual
          << ", not " << expected;
    }
  }
}

Weights scaled_weights(std::mt19937_64& random, std::int64_t n, std::int64_t k, double deviation) {
  const std::vector<float> values = normal_values(random, n * k, deviation);
  std::vector<std::byte> rows(static_cast<std::size_t>(n * k * 2));
  EXPECT_TRUE(encode_row(DType::BF16, values.data(), n * k, rows.data()).ok());
  return {DType::BF16, n, k, std::move(rows)};
}

TEST_P(MatmulBf16, EveryCountOfRowsHasTheStatedOrder) {
  const Weights w(DType::BF16, 35, 96, random_);
  for (std::int64_t rows = 1; rows <= 70; ++rows) {
    Tensor x(DType::BF16, {rows, 96}, 3, 2);
    x.fill_normal(random_);
    expect_stated_order(x, w, GetParam(), 1 + static_cast<int>(rows % 3));
  }
}

// 1024 is a segment of the tiles; 256 rows are a tile of the widest kernel.
TEST_P(MatmulBf16, LongRowsAndManyRows) {
  for (const std::int64_t k : {32, 64, 992, 1024, 1056, 2080}) {
    for (const std::int64_t rows : {1, 5, 33}) {
      const Weights w(DType::BF16, 17, k, random_);
      Tensor x(DType::BF16, {rows, k});
      x.fill_normal(random_);
      expect_stated_order(x, w, GetParam());
    }
  }
  const Weights w(DType::BF16, 130, 64, random_);
  Tensor x(DType::BF16, {300, 64});
  x.fill_normal(random_);
  expect_stated_order(x, w, GetParam(), 2);
}

// Products that are subnormal, sums that become so, operands that are; infinities and NaN.
TEST_P(MatmulBf16, ValuesOfEverySize) {
  for (const double deviation : {1e-19, 3e-20, 1e-38, 1e19}) {
    const Weights w = scaled_weights(random_, 20, 96, deviation);
    for (const std::int64_t rows : {1, 2, 3, 40}) {
      Tensor x(DType::BF16, {rows, 96});
      x.fill_normal(random_, deviation == 1e-38 ? 1.0 : deviation);
      if (rows == 40) {
        x.set(7, 1e-40);
        x.set(96 + 9, HUGE_VAL);
        x.set(2 * 96 + 40, std::nan(""));
      }
      expect_stated_order(x, w, GetParam());
    }
  }
}

TEST_P(MatmulBf16, IsNearTheReference) {
  constexpr std::int64_t kK = 544;
  const Weights w(DType::BF16, 24, kK, random_);
  Tensor x(DType::BF16, {40, kK});
  x.fill_normal(random_);
  Tensor out(DType::F32, {40, 24});
  Tensor exact(DType::F32, {40, 24});
  run_fast(matmul_launch(x.view(), w.view(), out.view()), GetParam());
  run_reference(matmul_launch(x.view(), w.view(), exact.view()));
  for (std::int64_t r = 0; r < 40; ++r) {
    for (std::int64_t n = 0; n < 24; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < kK; ++k)
        sum += std::fabs(x.get(r * kK + k) * static_cast<double>(w.value(n, k)));
      // 16 roundings in a chain, one of the two chains' sum, one for each block; the reference rounds once.
      const double bound = (16 + 1 + kK / 32 + 1) * kUnitRoundoff * sum;
      ASSERT_NEAR(out.get(r * 24 + n), exact.get(r * 24 + n), bound);
    }
  }
}

// The gated MLP and the projection have the bits of the matmul.
TEST_P(MatmulBf16, OtherLaunchesHaveItsBits) {
  constexpr std::int64_t kK = 160;
  constexpr std::int64_t kN = 40;
  const Weights up(DType::BF16, kN, kK, random_);
  const Weights gate(DType::BF16, kN, kK, random_);
  for (const std::int64_t rows : {1, 2, 31, 48}) {
    Tensor x(DType::BF16, {1, rows, kK});
    x.fill_normal(random_);
    Tensor product(DType::F32, {1, rows, kN});
    run_fast(matmul_launch(x.view(), up.view(), product.view()), GetParam());

    ProjectionSection section;
    section.weight = 1;
    std::vector<std::int64_t> fields(kProjectionFields);
    std::memcpy(fields.data(), static_cast<const void*>(&section), sizeof(section));
    Tensor projected(DType::F32, {1, rows, kN});
    run_fast({"projection", {{"sections", fields}}, {x.view(), up.view()}, {projected.view()}}, GetParam());
    EXPECT_EQ(projected.storage(), product.storage());

    // f32 launches of the portable level for what follows the products.
    Tensor gates(DType::F32, {1, rows, kN});
    run_fast(matmul_launch(x.view(), gate.view(), gates.view()), GetParam());
    Tensor gated(DType::F32, {1, rows, kN});
    run_fast({"swiglu_mlp", {}, {x.view(), gate.view(), up.view()}, {gated.view()}}, GetParam());
    Tensor portable(DType::F32, {1, rows, kN});
    run_fast({"swiglu_mlp", {}, {x.view(), gate.view(), up.view()}, {portable.view()}}, Isa::Portable);
    EXPECT_EQ(gated.storage(), portable.storage());
    Tensor gelu(DType::F32, {1, rows, kN});
    run_fast({"geglu_mlp", {}, {x.view(), gate.view(), up.view()}, {gelu.view()}}, GetParam());
    run_fast({"geglu_mlp", {}, {x.view(), gate.view(), up.view()}, {portable.view()}}, Isa::Portable);
    EXPECT_EQ(gelu.storage(), portable.storage());
    for (std::int64_t i = 0; i < rows * kN; ++i) {
      const double z = gates.get(i);
      const double expected = z / (1 + std::exp(-z)) * product.get(i);
      ASSERT_NEAR(gated.get(i), expected, 8 * kUnitRoundoff * std::fabs(expected) + 1e-30);
    }
  }
}

// Behind a norm: what rms_norm writes as bf16 is the rounded f32 of it.
TEST_P(MatmulBf16, ANormWritesRoundedRows) {
  for (const std::int64_t length : {1, 15, 32, 100}) {
    Tensor x(DType::F32, {6, length}, 3, 4);
    Tensor w(DType::F32, {length});
    x.fill_normal(random_);
    w.fill_normal(random_);
    Tensor wide(DType::F32, {6, length});
    Tensor narrow(DType::BF16, {6, length}, 3, 2);
    const Attributes eps{{"eps", 1e-5}};
    run_fast({"rms_norm", eps, {x.view(), w.view()}, {wide.view()}}, GetParam());
    run_fast({"rms_norm", eps, {x.view(), w.view()}, {narrow.view()}}, GetParam());
    for (std::int64_t i = 0; i < 6 * length; ++i) {
      const auto value = static_cast<float>(wide.get(i));
      ASSERT_EQ(static_cast<float>(narrow.get(i)), bf16_to_f32(f32_to_bf16(value)));
    }
  }
}

TEST_P(MatmulBf16, RefusesWhatItCannotCompute) {
  Tensor out(DType::F32, {2, 16});
  for (const auto& [dtype, k] : {std::pair{DType::BF16, 48}, {DType::F16, 64}, {DType::F32, 64}}) {
    const Weights w(dtype, 16, k, random_);
    Tensor x(DType::BF16, {2, k});
    EXPECT_EQ(find_kernel(matmul_launch(x.view(), w.view(), out.view()), GetParam()), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, MatmulBf16, testing::ValuesIn(kIsaLevels), level_name);

}  // namespace
}  // namespace hone::test
