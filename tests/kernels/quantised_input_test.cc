// quantize_q8a, gather and swiglu_mlp of every ISA level.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numbers>

#include "matmul_test_support.h"

namespace hone::test {
namespace {

class QuantisedInput : public PerLevel {
 protected:
  std::mt19937_64 random_{7};
};

void expect_same_block(const BlockQ8A& actual, const float* x, std::int64_t where) {
  const BlockQ8A expected = encode_q8a_block(x);
  ASSERT_EQ(std::memcmp(actual.quants, expected.quants, 32), 0) << "block " << where;
  ASSERT_EQ(actual.offset, expected.offset) << "block " << where;
  if (std::isnan(expected.scale)) {
    ASSERT_TRUE(std::isnan(actual.scale) && std::isnan(actual.sum)) << "block " << where;
    return;
  }
  ASSERT_EQ(actual.scale, expected.scale) << "block " << where;
  double magnitude = 0;
  for (int j = 0; j < 32; ++j) magnitude += std::fabs(static_cast<double>(x[j]));
  // Trees of at most five additions, the expected sum rounded once.
  const double distance = std::fabs(static_cast<double>(actual.sum) - static_cast<double>(expected.sum));
  ASSERT_LE(distance, 1.01 * 6 * kUnitRoundoff * magnitude) << "block " << where;
}

// Blocks of special kinds among blocks of ordinary ones.
std::vector<float> awkward_values(std::mt19937_64& random, std::int64_t count) {
  std::vector<float> values = normal_values(random, count, 3.0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::int64_t b = 0; b < count / 32; ++b) {
    float* block = values.data() + b * 32;
    for (int j = 0; j < 32; ++j) {
      if (b % 9 == 1) block[j] = 0;
      if (b % 9 == 2) block[j] = tiny * static_cast<float>(j * 6);  // the scale is one or two units: clamped
      if (b % 9 == 3) block[j] = tiny * static_cast<float>(j);      // the scale underflows to 0
      if (b % 9 == 4) block[j] = (static_cast<float>(j) - 15.5F) * 8.0F;  // scale about 1: many ties
      if (b % 9 == 5) block[j] *= 1e36F;
    }
    if (b % 9 == 4) block[0] = 127;
    if (b % 9 == 6) block[b % 32] = infinity;
    if (b % 9 == 7) block[b % 32] = NAN;
    if (b % 9 == 8) block[31] = -1000;
  }
  return values;
}

TEST_P(QuantisedInput, QuantizeQ8aIsAsDefined) {
  for (const std::int64_t rows : {1, 3, 40}) {
    for (const std::int64_t k : {32, 64, 896}) {
      const std::vector<float> values = awkward_values(random_, rows * k);
      Tensor x(DType::F32, {rows, k}, 7, 4);
      for (std::int64_t i = 0; i < rows * k; ++i)
        x.set(i, static_cast<double>(values[static_cast<std::size_t>(i)]));
      Activations out(rows, k, std::vector<float>(static_cast<std::size_t>(rows * k), 0.0F), 1);
      Activations portable(rows, k, std::vector<float>(static_cast<std::size_t>(rows * k), 0.0F), 1);
      run_fast(Launch{"quantize_q8a", {}, {x.view()}, {out.view()}}, GetParam(), 2);
      run_fast(Launch{"quantize_q8a", {}, {x.view()}, {portable.view()}}, Isa::Portable);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t b = 0; b < k / 32; ++b) {
          expect_same_block(out.block(r, b), values.data() + r * k + b * 32, r * (k / 32) + b);
          ASSERT_EQ(std::memcmp(&out.block(r, b), &portable.block(r, b), sizeof(BlockQ8A)), 0);
        }
      }
    }
  }
}

TEST_P(QuantisedInput, NanInOneBlockMakesItsRowsNanAndNoOther) {
  const Weights w(DType::Q8_0, 17, 64, random_);
  std::vector<float> values = normal_values(random_, 3 * 64);
  values[64 + 40] = NAN;
  Tensor x(DType::F32, {3, 64});
  std::memcpy(x.data<float>(), values.data(), values.size() * 4);
  Activations quantised(3, 64, std::vector<float>(3 * 64, 0.0F));
  Tensor out(DType::F32, {3, 17});
  run_fast(Launch{"quantize_q8a", {}, {x.view()}, {quantised.view()}}, GetParam());
  run_fast(matmul_launch(quantised.view(), w.view(), out.view()), GetParam());
  for (std::int64_t i = 0; i < 3 * 17; ++i) EXPECT_EQ(std::isnan(out.get(i)), i / 17 == 1) << i;
}

TEST_P(QuantisedInput, GatherDecodesEveryTable) {
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    constexpr std::int64_t kRows = 37;
    constexpr std::int64_t kWidth = 96;
    Weights table(dtype, kRows, kWidth, random_);
    Tensor ids(DType::I32, {2, 3});
    const std::int64_t picked[] = {0, 36, 16, 15, 16, 7};
    for (std::int64_t i = 0; i < 6; ++i) ids.set(i, static_cast<double>(picked[i]));
    for (const TensorView& view : {table.view(), table.strided()}) {
      Tensor out(DType::F32, {2, 3, kWidth});
      run_fast(Launch{"gather", {}, {view, ids.view()}, {out.view()}}, GetParam(), 2);
      for (std::int64_t i = 0; i < 6 * kWidth; ++i) {
        ASSERT_EQ(out.get(i), static_cast<double>(table.value(picked[i / kWidth], i % kWidth)))
            << dtype_name(dtype) << (view.layout == Layout::Panel16 ? " packed " : " strided ") << i;
      }
    }
  }
}

// silu of the gate's matmul times the up matmul, each with the bits of the matmul kernel. In f32: e^-g has an
// error of 1.05 ulp, 1 + e^-g, the quotient and the product one rounding each; an ulp is at most two unit
// roundoffs, and e^-g weighs at most 1 in 1 + e^-g: 2.1 + 3 roundings.
double gated(std::string_view op, double gate, double up) {
  if (op == "swiglu_mlp") return gate / (1 + std::exp(-gate)) * up;
  const double inner = std::sqrt(2 * std::numbers::inv_pi) * (gate + 0.044715 * gate * gate * gate);
  return gate / 2 * (1 + std::tanh(inner)) * up;
}

// silu: 5.1 roundings of the product's size (math16.h). gelu: the argument of tanh has 5 roundings, of which
// x sech^2 x <= 0.45 arrives in tanh, tanh itself adds 2 ulp = 4: less than 8 of |gate/2|, as 1 + tanh may
// cancel; then the sum and three products, 4 of the result's size.
double gated_bound(std::string_view op, double gate, double up) {
  const double expected = std::fabs(gated(op, gate, up));
  if (op == "swiglu_mlp") return 1.01 * 5.1 * kUnitRoundoff * expected + 1e-40;
  return 1.01 * kUnitRoundoff * (8 * std::fabs(gate / 2 * up) + 4 * expected) + 1e-40;
}

TEST_P(QuantisedInput, GatedMlpsAreTheGateOfOneMatmulTimesTheOther) {
  constexpr std::int64_t kK = 320;
  for (const DType dtype : {DType::F32, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
    for (const std::int64_t rows : {1, 8, 50}) {
      const std::int64_t n = rows == 8 ? 16 : 21;
      const Weights gate(dtype, n, kK, random_);
      const Weights up(dtype, n, kK, random_);
      const std::vector<float> values = normal_values(random_, rows * kK, 0.2);
      Tensor x(DType::F32, {rows, kK});
      std::memcpy(x.data<float>(), values.data(), values.size() * 4);
      Activations quantised(rows, kK, values);
      for (const bool int8 : {false, true}) {
        if (int8 && dtype_row(dtype).block_elements == 1) continue;
        const TensorView input = int8 ? quantised.view() : x.view();
        Tensor g(DType::F32, {rows, n});
        Tensor u(DType::F32, {rows, n});
        Tensor out(DType::F32, {rows, n}, 3);
        run_fast(matmul_launch(input, gate.view(), g.view()), GetParam());
        run_fast(matmul_launch(input, up.view(), u.view()), GetParam());
        for (const std::string_view op : {"swiglu_mlp", "geglu_mlp"}) {
          const Launch launch{std::string(op), {}, {input, gate.view(), up.view()}, {out.view()}};
          run_and_compare_levels(launch, out, GetParam());
          for (std::int64_t i = 0; i < rows * n; ++i) {
            const double expected = gated(op, g.get(i), u.get(i));
            ASSERT_LE(std::fabs(out.get(i) - expected), gated_bound(op, g.get(i), u.get(i)))
                << op << " " << dtype_name(dtype) << " " << i << " gate " << g.get(i);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, QuantisedInput, testing::ValuesIn(kIsaLevels), level_name);

}  // namespace
}  // namespace hone::test
