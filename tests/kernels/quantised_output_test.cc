// rms_norm and attention that write q8a or bf16: the bits of the f32 kernel with the rounding behind it;
// norm_add: those of the norms and the sum; and quantize_q8a in two terms.
#include <cmath>

#include "projection_test_support.h"

namespace hone::test {
namespace {

class QuantisedOutput : public PerLevel {
 protected:
  std::mt19937_64 random_{41};
};
INSTANTIATE_TEST_SUITE_P(Levels, QuantisedOutput, testing::ValuesIn(kVectorLevels), level_name);

// Runs `launch` of the level into q8a and bf16, and into f32 and on through quantize_q8a of the portable
// level.
void expect_as_two_launches(Launch launch, const Sizes& sizes, Isa isa, const std::string& what) {
  Tensor wide(DType::F32, sizes);
  launch.outputs = {wide.view()};
  run_fast(launch, Isa::Portable);
  Guarded expected(DType::Q8A, sizes);
  TensorView rows = wide.view();
  TensorView blocks = expected.view();
  for (TensorView* view : {&rows, &blocks}) {
    view->shape[1] = sizes.back();
    view->shape[0] = product(sizes) / sizes.back();
    view->rank = 2;
    view->strides[0] = sizes.back();
    view->strides[1] = 1;
  }
  run_fast({"quantize_q8a", {}, {rows}, {blocks}}, Isa::Portable);
  for (const int threads : {1, 3}) {
    Guarded out(DType::Q8A, sizes);
    launch.outputs = {out.view()};
    run_fast(launch, isa, threads);
    ASSERT_EQ(out.bytes(), expected.bytes()) << what << ", " << threads << " threads";
    Guarded narrow(DType::BF16, sizes);
    launch.outputs = {narrow.view()};
    run_fast(launch, isa, threads);
    for (std::int64_t i = 0; i < product(sizes); ++i) {
      ASSERT_EQ(narrow.data<std::uint16_t>()[i], f32_to_bf16(static_cast<float>(wide.get(i))))
          << what << ", bf16, element " << i;
    }
  }
}

TEST_P(QuantisedOutput, OfRmsNorm) {
  for (const std::int64_t length : {32, 64, 96, 576, 1056}) {
    for (const std::int64_t rows : {1, 3, 9}) {
      for (const double offset : {0.0, 1.0}) {
        Tensor x(DType::F32, {rows, 2, length}, 5, 4);
        Tensor w(DType::F32, {length}, 0, 4);
        x.fill_normal(random_, 3.0);
        w.fill_normal(random_);
        if (rows == 9) x.set(4 * length + 7, NAN);
        expect_as_two_launches({"rms_norm", {{"eps", 1e-5}, {"offset", offset}}, {x.view(), w.view()}, {}},
                               {rows, 2, length}, GetParam(),
                               std::to_string(rows) + " rows of " + std::to_string(length));
      }
    }
  }
}

// norm_add against rms_norm, a sum and rms_norm; with and without a norm of the sum, in its own place and in
// that of the residual.
void expect_as_norms(std::int64_t rows, std::int64_t length, DType normed, double offset,
                     std::mt19937_64& random, Isa isa) {
  Tensor x(DType::F32, {rows, 2, length}, 5, 4);
  Tensor r(DType::F32, {rows, 2, length}, 3, 4);
  Tensor w(DType::F32, {length}, 0, 4);
  Tensor next(DType::F32, {length}, 0, 20);
  for (Tensor* operand : {&x, &r, &w, &next}) operand->fill_normal(random, 2.0);
  if (rows == 9) x.set(4 * length + 7, NAN);
  Tensor norm(DType::F32, x.sizes());
  run_fast({"rms_norm", {{"eps", 1e-5}, {"offset", offset}}, {x.view(), w.view()}, {norm.view()}},
           Isa::Portable);
  Guarded sum(DType::F32, x.sizes());
  for (std::int64_t i = 0; i < rows * 2 * length; ++i)
    sum.data<float>()[i] = static_cast<float>(r.get(i)) + static_cast<float>(norm.get(i));
  Guarded last(normed, x.sizes());
  run_fast({"rms_norm", {{"eps", 0.25}, {"offset", offset / 2}}, {sum.view(), next.view()}, {last.view()}},
           Isa::Portable);
  const Attributes alone{{"eps", 1e-5}, {"offset", offset}};
  Attributes both = alone;
  both.set("next_eps", 0.25);
  both.set("next_offset", offset / 2);
  for (const bool in_place : {false, true}) {
    const std::string what =
        std::to_string(rows) + " rows of " + std::to_string(length) + (in_place ? " in place" : "");
    Guarded y(DType::F32, x.sizes());
    Guarded z(normed, x.sizes());
    const auto residual = [&] {
      if (!in_place) return r.view();
      for (std::int64_t i = 0; i < rows * 2 * length; ++i) y.data<float>()[i] = static_cast<float>(r.get(i));
      return y.view();
    };
    run_fast({"norm_add", alone, {x.view(), w.view(), residual()}, {y.view()}}, isa, 3);
    ASSERT_EQ(y.bytes(), sum.bytes()) << what;
    y.clear();
    run_fast({"norm_add", both, {x.view(), w.view(), residual(), next.view()}, {y.view(), z.view()}}, isa, 2);
    ASSERT_EQ(y.bytes(), sum.bytes()) << what;
    ASSERT_EQ(z.bytes(), last.bytes()) << what;
  }
}

TEST_P(QuantisedOutput, OfNormsAboutASum) {
  for (const std::int64_t length : {32, 96, 1056}) {
    for (const std::int64_t rows : {1, 3, 9}) {
      for (const double offset : {0.0, 1.0})
        expect_as_norms(rows, length, DType::Q8A, offset, random_, GetParam());
    }
  }
  for (const std::int64_t length : {1, 7, 17, 40}) {
    for (const DType normed : {DType::F32, DType::BF16})
      expect_as_norms(3, length, normed, 0.0, random_, GetParam());
  }
}

TEST_P(QuantisedOutput, OfAttention) {
  for (const std::int64_t width : {32, 64, 96}) {
    for (const std::int64_t tokens : {1, 5, 33}) {
      for (const DType cache : {DType::F32, DType::F16}) {
        constexpr std::int64_t kCapacity = 70;
        Tensor q(DType::F32, {2, tokens, 2, 3, 40});
        Tensor k(cache, {2, kCapacity, 2, 40});
        Tensor v(cache, {2, kCapacity, 2, width});
        Tensor positions(DType::I32, {2, tokens});
        q.fill_normal(random_);
        k.fill_normal(random_);
        v.fill_normal(random_);
        // The first token of the second sequence is padding: no key is visible to it.
        for (std::int64_t i = 0; i < 2 * tokens; ++i)
          positions.set(i, i == tokens ? -1.0 : static_cast<double>(kCapacity - tokens + i % tokens));
        expect_as_two_launches({"attention",
                                {{"scale", 0.2}},
                                {q.permuted({0, 2, 3, 1, 4}), k.view(), v.view(), positions.view()},
                                {}},
                               {2, tokens, 2, 3, width}, GetParam(),
                               std::to_string(tokens) + " tokens, values of " + std::to_string(width));
      }
    }
  }
}

// A norm that writes two terms has the bits of the f32 kernel with quantize_q8a behind it.
TEST_P(QuantisedOutput, OfNormsInTwoTerms) {
  for (const std::string op : {"rms_norm", "layer_norm"}) {
    for (const std::int64_t length : {32, 96, 576}) {
      for (const std::int64_t rows : {1, 9}) {
        Tensor x(DType::F32, {rows, length}, 5, 4);
        Tensor w(DType::F32, {length}, 0, 4);
        Tensor b(DType::F32, {length}, 0, 4);
        for (Tensor* tensor : {&x, &w, &b}) tensor->fill_normal(random_, 3.0);
        Launch launch{op, {{"eps", 1e-5}}, {x.view(), w.view()}, {}};
        if (op == "layer_norm") launch.inputs.push_back(b.view());
        Tensor wide(DType::F32, {rows, length});
        launch.outputs = {wide.view()};
        run_fast(launch, Isa::Portable);
        Guarded expected(DType::Q8A, {rows, 2, length});
        run_fast({"quantize_q8a", {{"terms", std::int64_t{2}}}, {wide.view()}, {expected.view()}},
                 Isa::Portable);
        Guarded out(DType::Q8A, {rows, 2, length});
        launch.outputs = {out.view()};
        run_fast(launch, GetParam(), 3);
        ASSERT_EQ(out.bytes(), expected.bytes()) << op << ", " << rows << " rows of " << length;
        Guarded reference(DType::Q8A, {rows, 2, length});
        launch.outputs = {reference.view()};
        run_reference(launch);
        for (std::int64_t i = 0; i < rows * length; ++i) {
          const std::int64_t first = i / length * 2 * length + i % length;
          // Two roundings of half a unit of the second term each, and those of the norm's few f32 operations.
          const double unit = static_cast<double>(out.data<BlockQ8A>()[(first + length) / 32].scale);
          const double largest = 127 * static_cast<double>(out.data<BlockQ8A>()[first / 32].scale);
          ASSERT_NEAR(reference.get(first) + reference.get(first + length),
                      out.get(first) + out.get(first + length), 1.1 * unit + 16 * kUnitRoundoff * largest);
        }
      }
    }
  }
}

// The reference kernels round to f32 and then to blocks.
TEST(QuantisedOutputReference, AreTheBlocksOfTheF32Kernel) {
  std::mt19937_64 random(43);
  Tensor x(DType::F32, {5, 96}, 3);
  Tensor w(DType::F32, {96});
  x.fill_normal(random);
  w.fill_normal(random);
  Tensor wide(DType::F32, {5, 96});
  Guarded blocks(DType::Q8A, {5, 96});
  run_reference({"rms_norm", {{"eps", 1e-5}}, {x.view(), w.view()}, {wide.view()}});
  run_reference({"rms_norm", {{"eps", 1e-5}}, {x.view(), w.view()}, {blocks.view()}});
  for (std::int64_t i = 0; i < 15; ++i) {
    const BlockQ8A expected = encode_q8a_block(wide.data<float>() + i * 32);
    EXPECT_EQ(std::memcmp(blocks.data<BlockQ8A>() + i, &expected, sizeof(expected)), 0) << i;
  }
}

// The second term is the first one's remainder, so both together have the error of the second alone: half a
// scale, which is at most 1/254 of half the first scale. Each product and difference is rounded once.
TEST_P(QuantisedOutput, OfTwoTerms) {
  for (const std::int64_t rows : {1, 3, 40}) {
    for (const std::int64_t k : {32, 96, 896}) {
      Tensor x(DType::F32, {rows, k}, 7, 4);
      x.fill_normal(random_, 3.0);
      if (rows == 3) {
        for (std::int64_t i = 0; i < 32; ++i) x.set(i, 0);
        x.set(k + 3, INFINITY);
      }
      const Attributes terms{{"terms", std::int64_t{2}}};
      Guarded portable(DType::Q8A, {rows, 2, k});
      Guarded out(DType::Q8A, {rows, 2, k});
      Guarded reference(DType::Q8A, {rows, 2, k});
      run_fast({"quantize_q8a", terms, {x.view()}, {portable.view()}}, Isa::Portable);
      run_fast({"quantize_q8a", terms, {x.view()}, {out.view()}}, GetParam(), 2);
      run_reference({"quantize_q8a", terms, {x.view()}, {reference.view()}});
      ASSERT_EQ(out.bytes(), portable.bytes());
      for (std::int64_t i = 0; i < rows * k; ++i) {
        const std::int64_t first = i / k * 2 * k + i % k;
        const bool finite = rows != 3 || i / 32 != k / 32;
        ASSERT_EQ(std::isfinite(out.get(first) + out.get(first + k)), finite) << i;
        if (!finite) continue;
        const BlockQ8A& block = out.data<BlockQ8A>()[first / 32];
        const BlockQ8A& rest = out.data<BlockQ8A>()[(first + k) / 32];
        const double unit = static_cast<double>(block.scale);
        ASSERT_LE(static_cast<double>(rest.scale), unit * 0.501 / 127) << i;
        const double error = x.get(i) - out.get(first) - out.get(first + k);
        ASSERT_LE(std::fabs(error), 0.501 * static_cast<double>(rest.scale) + 3 * kUnitRoundoff * 127 * unit)
            << i;
        // encode_q8a_block() has the same scale and quants; its sum is added in another order.
        ASSERT_EQ(out.get(first), reference.get(first)) << i;
        ASSERT_EQ(out.get(first + k), reference.get(first + k)) << i;
      }
    }
  }
}

}  // namespace
}  // namespace hone::test
