// rms_norm, softmax, reductions, rope: against sums in double, across ISA levels, and row by row.
#include <cmath>

#include "vector_test_support.h"

namespace hone::test {
namespace {

constexpr double kHalfUlp = 0x1p-24;  // relative error of one rounding to f32

class RowsTest : public PerLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, RowsTest, testing::ValuesIn(kVectorLevels), level_name);

const Sizes kLengths = {1,  2,  3,  7,  15,  16,  17,  31,  32,  33,  47,
                        48, 63, 64, 65, 100, 255, 256, 257, 576, 1000};

double exact_row_sum(const Tensor& x, std::int64_t row, std::int64_t length, double (*f)(double)) {
  long double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += static_cast<long double>(f(x.get(row * length + i)));
  return static_cast<double>(sum);
}

TEST_P(RowsTest, RmsNormIsWithinThreeRoundings) {
  std::mt19937_64 random(1);
  const double eps = 1e-5;
  for (const std::int64_t length : kLengths) {
    for (const std::int64_t shift : {0, 4, 20}) {
      Tensor x(DType::F32, {2, 5, length}, 3, shift);
      Tensor w(DType::F32, {length}, 0, shift);
      Tensor out(DType::F32, {2, 5, length}, 1, shift);
      x.fill_normal(random);
      w.fill_normal(random);
      run_and_compare_levels({"rms_norm", {{"eps", eps}}, {x.view(), w.view()}, {out.view()}}, out,
                             GetParam());
      for (std::int64_t i = 0; i < 10 * length; ++i) {
        const double squares = exact_row_sum(x, i / length, length, [](double v) { return v * v; });
        const double scale = 1.0 / std::sqrt(squares / static_cast<double>(length) + eps);
        const double expected = x.get(i) * scale * w.get(i % length);
        // The scale, x * scale and the product with w are rounded; the f64 sum adds less than 2^-40.
        ASSERT_LE(std::abs(out.get(i) - expected), std::abs(expected) * 3.01 * kHalfUlp)
            << length << " at " << i;
      }
    }
  }
}

TEST_P(RowsTest, LayerNormIsWithinTheRoundingsOfItsSteps) {
  std::mt19937_64 random(11);
  const double eps = 1e-5;
  for (const std::int64_t length : kLengths) {
    for (const std::int64_t shift : {0, 4, 20}) {
      Tensor x(DType::F32, {2, 5, length}, 3, shift);
      Tensor w(DType::F32, {length}, 0, shift);
      Tensor b(DType::F32, {length}, 0, shift);
      Tensor out(DType::F32, {2, 5, length}, 1, shift);
      x.fill_normal(random);
      w.fill_normal(random);
      b.fill_normal(random);
      run_and_compare_levels({"layer_norm", {{"eps", eps}}, {x.view(), w.view(), b.view()}, {out.view()}},
                             out, GetParam());
      for (std::int64_t i = 0; i < 10 * length; ++i) {
        const std::int64_t row = i / length;
        const double mean =
            exact_row_sum(x, row, length, [](double v) { return v; }) / static_cast<double>(length);
        double variance = 0;
        for (std::int64_t k = 0; k < length; ++k) {
          const double distance = x.get(row * length + k) - mean;
          variance += distance * distance / static_cast<double>(length);
        }
        const double scale = 1.0 / std::sqrt(variance + eps);
        const double centred = x.get(i) - mean;
        const double product = centred * scale * w.get(i % length);
        // The rounded mean and difference move x - mean by u (|mean| + |x - mean|). The variance, whose terms
        // move as much, moves the scale by u (|mean| * scale + 1) of itself, as the mean of |x - mean| is at
        // most its root. Then the scale, two products and the sum are rounded.
        const double centring = (std::abs(mean) + std::abs(centred)) * scale * std::abs(w.get(i % length));
        const double rest = std::abs(product) * (std::abs(mean) * scale + 1 + 3) + std::abs(out.get(i));
        const double bound = 1.01 * kHalfUlp * (centring + rest);
        ASSERT_LE(std::abs(out.get(i) - (product + b.get(i % length))), bound) << length << " at " << i;
      }
    }
  }
}

TEST_P(RowsTest, SoftmaxIsWithinTheErrorOfExpAndTwoRoundings) {
  std::mt19937_64 random(2);
  for (const std::int64_t length : kLengths) {
    Tensor x(DType::F32, {3, 4, length}, 5, 4);
    Tensor out(DType::F32, {3, 4, length}, 0, 4);
    x.fill_normal(random, 6.0);
    if (length > 2) x.set(1, -INFINITY);
    run_and_compare_levels({"softmax", {}, {x.view()}, {out.view()}}, out, GetParam());
    for (std::int64_t row = 0; row < 12; ++row) {
      double largest = -INFINITY;
      for (std::int64_t i = 0; i < length; ++i) largest = std::max(largest, x.get(row * length + i));
      double sum = 0;
      for (std::int64_t i = 0; i < length; ++i) sum += std::exp(x.get(row * length + i) - largest);
      for (std::int64_t i = 0; i < length; ++i) {
        const double distance = largest - x.get(row * length + i);
        const double expected = std::exp(-distance) / sum;
        // x - max is rounded (relative error of exp: distance * 2^-24), exp errs by 1 ulp (2^-23) in each
        // term and so in the sum, the sum and the quotient are rounded; results below 2^-126 lose up to a
        // unit of 2^-149.
        const double relative = std::isinf(distance) ? 0.0 : (distance + 40.0 + 2.0 + 2.0 + 2.0) * kHalfUlp;
        ASSERT_LE(std::abs(out.get(row * length + i) - expected), expected * relative + 0x1p-149)
            << length << " row " << row << " at " << i;
      }
    }
    if (length > 2) {
      ASSERT_EQ(out.get(1), 0.0);
    }
  }
}

TEST_P(RowsTest, SoftmaxOfNothingFiniteIsNan) {
  Tensor x(DType::F32, {3, 20});
  Tensor out(DType::F32, {3, 20});
  for (std::int64_t i = 0; i < 20; ++i) {
    x.set(i, -INFINITY);
    x.set(20 + i, i == 17 ? NAN : 1.0);
    x.set(40 + i, 1.0);
  }
  run_fast({"softmax", {}, {x.view()}, {out.view()}}, GetParam());
  for (std::int64_t i = 0; i < 40; ++i) ASSERT_TRUE(std::isnan(out.get(i))) << i;
  for (std::int64_t i = 40; i < 60; ++i) ASSERT_EQ(out.get(i), static_cast<double>(0.05F)) << i;
}

TEST_P(RowsTest, ReductionsRoundOnce) {
  std::mt19937_64 random(3);
  Sizes lengths = kLengths;
  lengths.push_back(0);
  for (const std::int64_t length : lengths) {
    Tensor x(DType::F32, {3, 7, length}, 2, 4);
    x.fill_normal(random);
    for (const std::int64_t keep : {0, 1}) {
      const Sizes sizes = keep == 1 ? Sizes{3, 7, 1} : Sizes{3, 7};
      const Attributes attributes{{"axis", std::int64_t{keep == 1 ? -1 : 2}}, {"keep_dims", keep}};
      for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max"}) {
        Tensor out(DType::F32, sizes);
        run_and_compare_levels({op, attributes, {x.view()}, {out.view()}}, out, GetParam());
        for (std::int64_t row = 0; row < 21; ++row) {
          const double sum = exact_row_sum(x, row, length, [](double v) { return v; });
          const double absolute = exact_row_sum(x, row, length, [](double v) { return std::abs(v); });
          const double divisor = std::string(op) == "reduce_mean" ? static_cast<double>(length) : 1.0;
          if (std::string(op) == "reduce_max") {
            double largest = -INFINITY;
            for (std::int64_t i = 0; i < length; ++i) largest = std::max(largest, x.get(row * length + i));
            ASSERT_EQ(out.get(row), largest);
          } else if (length == 0) {
            ASSERT_TRUE(divisor == 0 ? std::isnan(out.get(row)) : out.get(row) == 0.0);
          } else {
            // f64 additions err by at most length * 2^-53 of the sum of magnitudes; one rounding to f32
            // follows.
            const double bound = std::abs(sum) * kHalfUlp + absolute * static_cast<double>(length) * 0x1p-53;
            ASSERT_LE(std::abs(out.get(row) - sum / divisor), 1.001 * bound / divisor)
                << op << " of " << length;
          }
        }
      }
    }
  }
}

TEST_P(RowsTest, MaximumKeepsNanInEveryPlace) {
  for (std::int64_t place = 0; place < 37; ++place) {
    Tensor x(DType::F32, {1, 37});
    Tensor out(DType::F32, {1});
    for (std::int64_t i = 0; i < 37; ++i) x.set(i, static_cast<double>(i));
    x.set(place, NAN);
    run_fast({"reduce_max", {{"axis", std::int64_t{1}}}, {x.view()}, {out.view()}}, GetParam());
    ASSERT_TRUE(std::isnan(out.get(0))) << place;
  }
}

TEST_P(RowsTest, RopeIsTheChainOfPrimitives) {
  std::mt19937_64 random(4);
  for (const std::int64_t head : {2, 6, 32, 34, 64, 80, 128}) {
    for (const std::int64_t half : {head / 2, head / 4 > 0 ? head / 4 : 1}) {
      for (const std::int64_t interleaved : {0, 1}) {
        Tensor x(DType::F32, {2, 3, 5, head}, 1, 4);
        Tensor cos(DType::F32, {2, 3, half}, 2, 8);
        Tensor sin(DType::F32, {2, 3, half}, 0, 4);
        Tensor out(DType::F32, {2, 3, 5, head}, 0, 4);
        x.fill_normal(random);
        cos.fill_normal(random);
        sin.fill_normal(random);
        const Launch launch{
            "rope", {{"interleaved", interleaved}}, {x.view(), cos.view(), sin.view()}, {out.view()}};
        run_and_compare_levels(launch, out, GetParam());
        for (std::int64_t i = 0; i < product(x.sizes()); ++i) {
          const std::int64_t e = i % head;
          const std::int64_t pair = interleaved == 1 ? e / 2 : e % half;
          float expected = static_cast<float>(x.get(i));
          if (e < 2 * half) {
            const bool second = interleaved == 1 ? e % 2 == 1 : e >= half;
            const std::int64_t step = interleaved == 1 ? 1 : half;
            const float other = static_cast<float>(x.get(second ? i - step : i + step));
            const float c = static_cast<float>(cos.get(i / head / 5 * half + pair));
            const float s = static_cast<float>(sin.get(i / head / 5 * half + pair));
            volatile float by_cos = expected * c;  // two rounded products, one rounded sum
            volatile float by_sin = other * s;
            expected = second ? by_cos + by_sin : by_cos - by_sin;
          }
          ASSERT_EQ(out.get(i), static_cast<double>(expected)) << head << " " << half << " at " << i;
        }
        Tensor same = x;  // in place
        run_fast(
            {"rope", {{"interleaved", interleaved}}, {same.view(), cos.view(), sin.view()}, {same.view()}},
            GetParam());
        for (std::int64_t i = 0; i < product(x.sizes()); ++i) ASSERT_EQ(same.get(i), out.get(i));
      }
    }
  }
}

// One row's bits do not depend on the batch around it, nor on threads.
TEST_P(RowsTest, RowsAreIndependent) {
  std::mt19937_64 random(5);
  const std::int64_t length = 77;
  for (std::int64_t rows = 1; rows <= 17; ++rows) {
    Tensor x(DType::F32, {rows, length});
    Tensor w(DType::F32, {length});
    x.fill_normal(random);
    w.fill_normal(random);
    for (const bool norm : {false, true}) {
      const std::string op = norm ? "rms_norm" : "softmax";
      const Attributes attributes = norm ? Attributes{{"eps", 1e-6}} : Attributes{};
      Tensor all(DType::F32, {rows, length});
      std::vector<TensorView> inputs = {x.view()};
      if (norm) inputs.push_back(w.view());
      run_fast({op, attributes, inputs, {all.view()}}, GetParam(), static_cast<int>(rows % 4) + 1);
      for (std::int64_t row = 0; row < rows; ++row) {
        Tensor one(DType::F32, {1, length});
        TensorView in = x.view();
        in.shape[0] = 1;
        in.data = x.data<float>() + row * length;
        inputs[0] = in;
        run_fast({op, attributes, inputs, {one.view()}}, GetParam());
        ASSERT_EQ(std::memcmp(one.data<float>(), all.data<float>() + row * length, length * sizeof(float)), 0)
            << op << " row " << row << " of " << rows;
      }
    }
  }
}

}  // namespace
}  // namespace hone::test
