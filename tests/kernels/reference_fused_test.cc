// The reference kernels of contractions and fused ops, against tables worked out by hand and independent
// formulas.
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "call_kernel.h"
#include "tensor/panel_layout.h"

namespace hone::test {
namespace {

const Attributes kTransposed{{"transpose_b", std::int64_t{1}}};

// Values in [-1, 1), different for each seed.
std::vector<float> noise(std::size_t count, std::uint32_t seed) {
  std::vector<float> out;
  std::uint32_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    out.push_back(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
  return out;
}

TEST(ReferenceMatmul, ByHand) {
  const Tensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = f32({3, 2}, {1, 10, 2, 20, 3, 30});
  const std::vector<float> expected = {14, 140, 32, 320};
  EXPECT_EQ(run_f32("matmul.reference", {a.view, b.view}, {2, 2}), expected);
  const Tensor bt = f32({2, 3}, {1, 2, 3, 10, 20, 30});
  EXPECT_EQ(run_f32("matmul.reference", {a.view, bt.view}, {2, 2}, kTransposed), expected);
  const Tensor row = f32({3}, {1, 1, 1});
  EXPECT_EQ(run_f32("matmul.reference", {row.view, b.view}, {2}), (std::vector<float>{6, 60}));
}

TEST(ReferenceMatmul, LeadingAxesBroadcast) {
  const Tensor a = f32({2, 1, 1, 2}, {1, 2, 3, 4});
  const Tensor b = f32({3, 2, 1}, {1, 1, 10, 10, 0, 100});
  EXPECT_EQ(run_f32("matmul.reference", {a.view, b.view}, {2, 3, 1, 1}),
            (std::vector<float>{3, 30, 200, 7, 70, 400}));
  const Tensor row = f32({2}, {1, 2});
  EXPECT_EQ(run_f32("matmul.reference", {row.view, b.view}, {3, 1}), (std::vector<float>{3, 30, 200}));
  // A 2-D right operand serves every leading axis.
  const Tensor w = f32({1, 2}, {1, 10});
  EXPECT_EQ(run_f32("matmul.reference", {a.view, w.view}, {2, 1, 1, 1}, kTransposed),
            (std::vector<float>{21, 43}));
}

TEST(ReferenceMatmul, StridedViewsAgreeWithCopies) {
  // q [T,H,E] seen as [H,T,E] times k [C,H,E] seen as [H,E,C].
  const std::int64_t t = 3, h = 2, e = 5, c = 11;
  const std::vector<float> q_values = noise(static_cast<std::size_t>(t * h * e), 1);
  const std::vector<float> k_values = noise(static_cast<std::size_t>(c * h * e), 2);
  const Tensor q = f32({t, h, e}, q_values);
  const Tensor k = f32({c, h, e}, k_values);
  TensorView q_view = q.view;
  q_view.shape[0] = h, q_view.shape[1] = t;
  q_view.strides[0] = e, q_view.strides[1] = h * e;
  TensorView k_view = k.view;
  k_view.shape[0] = h, k_view.shape[1] = e, k_view.shape[2] = c;
  k_view.strides[0] = e, k_view.strides[1] = 1, k_view.strides[2] = h * e;
  const std::vector<float> out = run_f32("matmul.reference", {q_view, k_view}, {h, t, c});
  for (std::int64_t i = 0; i < h * t * c; ++i) {
    const std::int64_t head = i / (t * c), row = i / c % t, column = i % c;
    double sum = 0;
    for (std::int64_t j = 0; j < e; ++j) {
      sum += static_cast<double>(q_values[static_cast<std::size_t>((row * h + head) * e + j)]) *
             static_cast<double>(k_values[static_cast<std::size_t>((column * h + head) * e + j)]);
    }
    ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(sum)) << i;
  }
}

TEST(ReferenceMatmul, EveryWeightTypePackedOrNot) {
  const std::int64_t m = 5, n = 19, k = 64;
  const std::vector<float> x = noise(static_cast<std::size_t>(m * k), 3);
  const Tensor a = f32({m, k}, x);
  for (const DType dtype : {DType::F64, DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1,
                            DType::Q5_0, DType::Q5_1, DType::Q8_0}) {
    const std::vector<float> source = noise(static_cast<std::size_t>(n * k), 4);
    Tensor w = dtype == DType::F64
                   ? make(DType::F64, {n, k}, std::vector<double>(source.begin(), source.end()))
                   : encoded(dtype, {n, k}, source);
    std::vector<float> decoded(source.size());
    ASSERT_TRUE(decode_row(dtype, w.bytes.data(), n * k, decoded.data()).ok());
    const std::vector<float> out = run_f32("matmul.reference", {a.view, w.view}, {m, n}, kTransposed);
    for (std::int64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) {
        sum += static_cast<double>(x[static_cast<std::size_t>(i / n * k + j)]) *
               static_cast<double>(decoded[static_cast<std::size_t>(i % n * k + j)]);
      }
      ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(sum))
          << dtype_name(dtype) << " at " << i;
    }
    if (!panel_supports(dtype, k)) continue;
    std::vector<std::byte> packed(static_cast<std::size_t>(panel_bytes(dtype, n, k)));
    for (std::int64_t first = 0; first < n; first += 16) {
      pack_panel(dtype, w.bytes.data() + dtype_bytes(dtype, first * k), std::min<std::int64_t>(16, n - first),
                 k, packed.data() + first / 16 * panel_shape(dtype, k).bytes);
    }
    TensorView panels = w.view;
    panels.layout = Layout::Panel16;
    panels.data = packed.data();
    EXPECT_EQ(run_f32("matmul.reference", {a.view, panels}, {m, n}, kTransposed), out) << dtype_name(dtype);
    const Tensor ids = i32({3}, {18, 0, 16});
    EXPECT_EQ(run_f32("gather.reference", {panels, ids.view}, {3, k}),
              run_f32("gather.reference", {w.view, ids.view}, {3, k}))
        << dtype_name(dtype);
  }
}

// Rows do not depend on the batch they stand in.
TEST(ReferenceMatmul, RowsAreAlikeInEveryBatch) {
  const std::int64_t n = 10, k = 96;
  const Tensor w = encoded(DType::Q4_0, {n, k}, noise(static_cast<std::size_t>(n * k), 5));
  const std::vector<float> x = noise(static_cast<std::size_t>(17 * k), 6);
  const Tensor all = f32({17, k}, x);
  const std::vector<float> together = run_f32("matmul.reference", {all.view, w.view}, {17, n}, kTransposed);
  for (std::int64_t row = 0; row < 17; ++row) {
    TensorView one = all.view;
    one.shape[0] = 1;
    one.data = static_cast<float*>(one.data) + row * k;
    const std::vector<float> alone = run_f32("matmul.reference", {one, w.view}, {1, n}, kTransposed);
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + row * n, alone.size() * 4), 0) << row;
  }
}

// A q8a row times q4_1: the minima meet the sum of each block's rounded values, as the products do.
TEST(ReferenceMatmul, QuantisedActivations) {
  const std::int64_t n = 9, k = 64;
  const std::vector<float> x = noise(static_cast<std::size_t>(k), 7);
  const Tensor a = f32({1, k}, x);
  Tensor q(DType::Q8A, {1, k});
  run_kernel("quantize_q8a.reference", {}, {a.view}, {q.view});
  const auto* blocks = reinterpret_cast<const BlockQ8A*>(q.bytes.data());
  for (const DType dtype : {DType::Q8_0, DType::Q4_1, DType::Q5_1}) {
    const Tensor w = encoded(dtype, {n, k}, noise(static_cast<std::size_t>(n * k), 8));
    const std::vector<float> out = run_f32("matmul.reference", {q.view, w.view}, {1, n}, kTransposed);
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<float> decoded(static_cast<std::size_t>(k));
      ASSERT_TRUE(decode_row(dtype, w.bytes.data() + dtype_bytes(dtype, i * k), k, decoded.data()).ok());
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t j = 0; j < k; ++j) {
        const BlockQ8A& block = blocks[j / 32];
        const double activation = static_cast<double>(block.scale) * block.quants[j % 32];
        const double weight = static_cast<double>(decoded[static_cast<std::size_t>(j)]);
        sum += weight * activation;
        // A q4_1 weight is d*q + m, whose parts may be several times larger than their sum.
        magnitude += std::fabs(weight * activation) + 4 * std::fabs(activation);
      }
      // The result is rounded to f32 once, and BlockQ8A::sum once per block: 2^-23 of the terms' magnitude
      // covers both.
      EXPECT_NEAR(static_cast<double>(out[static_cast<std::size_t>(i)]), sum, magnitude * 0x1p-23) << i;
    }
  }
}

TEST(ReferenceMatmul, Refusals) {
  const Tensor a(DType::F32, {2, 32});
  const Tensor w(DType::Q8_0, {32, 32});
  const Tensor out(DType::F32, {2, 32});
  const Kernel& kernel = *find_kernel("matmul.reference");
  EXPECT_EQ(refusal(kernel, kTransposed, {a.view, w.view}, {out.view}), "");
  EXPECT_NE(refusal(kernel, {}, {a.view, w.view}, {out.view}), "");
  EXPECT_NE(refusal(kernel, kTransposed, {w.view, w.view}, {out.view}), "");
}

TEST(ReferenceNorms, RmsNorm) {
  const Tensor x = f32({2, 4}, {1, -1, 1, -1, 3, 4, 0, 0});
  const Tensor w = f32({4}, {1, 2, 3, 4});
  // Row 0: mean square 1, with eps 3 the factor is 1/2. Row 1: 25/4 + 3 = 9.25.
  const std::vector<float> out = run_f32("rms_norm.reference", {x.view, w.view}, {2, 4}, {{"eps", 3.0}});
  const double factor = 1 / std::sqrt(9.25);
  EXPECT_EQ(out, (std::vector<float>{0.5f, -1, 1.5f, -2, static_cast<float>(3 * factor),
                                     static_cast<float>(8 * factor), 0, 0}));
}

TEST(ReferenceNorms, NormAdd) {
  const Tensor x = f32({1, 4}, {1, -1, 1, -1});
  const Tensor w = f32({4}, {1, 2, 3, 4});
  const Tensor r = f32({1, 4}, {0.5f, 2, -0.5f, 4});
  // The mean square is 1, with eps 3 the factor is 1/2.
  const std::vector<float> out =
      run_f32("norm_add.reference", {x.view, w.view, r.view}, {1, 4}, {{"eps", 3.0}});
  EXPECT_EQ(out, (std::vector<float>{1, 1, 1, 2}));
}

TEST(ReferenceNorms, Softmax) {
  const float log2 = static_cast<float>(std::log(2.0));
  const Tensor x = f32({3, 3}, {0, 0, log2, -kInf, 5, -kInf, 1000, 1000, -1000});
  const std::vector<float> out = run_f32("softmax.reference", {x.view}, {3, 3});
  EXPECT_NEAR(out[0], 0.25, 0x1p-24);
  EXPECT_NEAR(out[2], 0.5, 0x1p-23);  // log 2 itself is rounded
  EXPECT_EQ(std::vector<float>(out.begin() + 3, out.end()), (std::vector<float>{0, 1, 0, 0.5f, 0.5f, 0}));
  const Tensor masked = f32({1, 2}, {-kInf, -kInf});
  EXPECT_TRUE(std::isnan(run_f32("softmax.reference", {masked.view}, {1, 2})[0]));
}

TEST(ReferenceRope, BothPairings) {
  // One sequence, two tokens, two heads, E 5, R 4. Token 0 turns pair 0 by 90 degrees; token 1 pair 1 by 180.
  const Tensor x = f32({1, 2, 2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const Tensor cos = f32({1, 2, 2}, {0, 1, 1, -1});
  const Tensor sin = f32({1, 2, 2}, {1, 0, 0, 0});
  const auto rope = [&](std::int64_t interleaved) {
    return run_f32("rope.reference", {x.view, cos.view, sin.view}, {1, 2, 2, 5},
                   {{"interleaved", interleaved}});
  };
  EXPECT_EQ(rope(1),
            (std::vector<float>{-2, 1, 3, 4, 5, -7, 6, 8, 9, 10, 1, 2, -3, -4, 5, 6, 7, -8, -9, 10}));
  EXPECT_EQ(rope(0),
            (std::vector<float>{-3, 2, 1, 4, 5, -8, 7, 6, 9, 10, 1, -2, 3, -4, 5, 6, -7, 8, -9, 10}));
}

TEST(ReferenceAttention, ByHandWithMaskAndPadding) {
  // One kv head, two query heads, E 1, three keys. Scores q*k*scale are 0 or log 3, so weights are 1 or 3.
  const float log3 = static_cast<float>(std::log(3.0));
  const Tensor q = f32({1, 1, 2, 3, 1}, {0, 1, 1, 2, 2, 2});
  const Tensor k = f32({1, 3, 1, 1}, {0, log3, 0});
  const Tensor v = f32({1, 3, 1, 1}, {4, 8, 100});
  const Tensor positions = i32({1, 3}, {0, 1, -1});
  const std::vector<float> out = run_f32("attention.reference", {q.view, k.view, v.view, positions.view},
                                         {1, 3, 1, 2, 1}, {{"scale", 1.0}});
  // Token 0 sees key 0 only. Token 1: head 0 weights 1:3, head 1 weights 1:9. Token 2 is padding.
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[1], 4);
  EXPECT_NEAR(out[2], 7, 1e-6);
  EXPECT_NEAR(out[3], 7.6, 2e-6);
  EXPECT_EQ(out[4], 0);
  EXPECT_EQ(out[5], 0);
}

// The same step flattened, with a token of another sequence behind: it sees keys 0 and 1 of its own.
TEST(ReferenceAttention, OfAFlattenedStep) {
  const float log3 = static_cast<float>(std::log(3.0));
  const Tensor q = f32({1, 1, 2, 3, 1}, {0, 1, 1, 2, 2, 2});
  const Tensor k = f32({2, 3, 1, 1}, {0, log3, 0, log3, 0, 0});
  const Tensor v = f32({2, 3, 1, 1}, {4, 8, 100, 20, 10, 100});
  const Tensor positions = i32({1, 3}, {0, 1, 1});
  const Tensor sequence = i32({1, 3}, {0, 0, 1});
  const std::vector<float> out =
      run_f32("attention.reference", {q.view, k.view, v.view, positions.view, sequence.view}, {1, 3, 1, 2, 1},
              {{"scale", 1.0}});
  EXPECT_EQ(out[0], 4);
  EXPECT_NEAR(out[2], 7, 1e-6);
  EXPECT_NEAR(out[3], 7.6, 2e-6);
  EXPECT_NEAR(out[4], 17.5, 2e-6);  // head 0: q 1, weights 3:1
  EXPECT_NEAR(out[5], 19, 3e-6);    // head 1: q 2, weights 9:1
}

TEST(ReferenceAttention, AgreesWithItsFormula) {
  const std::int64_t b = 2, kv = 2, g = 3, t = 4, e = 8, c = 6;
  // q is stored [B,T,K,G,E] and seen as [B,K,G,T,E].
  const std::vector<float> q_values = noise(static_cast<std::size_t>(b * t * kv * g * e), 11);
  const Tensor q = f32({b, t, kv, g, e}, q_values);
  TensorView q_view = q.view;
  const std::int64_t shape[] = {b, kv, g, t, e};
  const std::int64_t strides[] = {t * kv * g * e, g * e, e, kv * g * e, 1};
  for (int i = 0; i < 5; ++i) q_view.shape[i] = shape[i], q_view.strides[i] = strides[i];
  const Tensor k = encoded(DType::F16, {b, c, kv, e}, noise(static_cast<std::size_t>(b * c * kv * e), 12));
  const Tensor v = encoded(DType::BF16, {b, c, kv, e}, noise(static_cast<std::size_t>(b * c * kv * e), 13));
  std::vector<float> k_values(k.bytes.size() / 2);
  std::vector<float> v_values(k_values.size());
  ASSERT_TRUE(decode_row(DType::F16, k.bytes.data(), b * c * kv * e, k_values.data()).ok());
  ASSERT_TRUE(decode_row(DType::BF16, v.bytes.data(), b * c * kv * e, v_values.data()).ok());
  const std::vector<std::int32_t> at = {0, 2, 3, 5, 1, -1, 5, 0};
  const Tensor positions = i32({b, t}, at);
  const std::vector<float> out = run_f32("attention.reference", {q_view, k.view, v.view, positions.view},
                                         {b, t, kv, g, e}, {{"scale", 0.5}});
  for (std::int64_t row = 0; row < b * t * kv * g; ++row) {
    const std::int64_t batch = row / (t * kv * g), head = row / g % kv;
    const std::int64_t visible = at[static_cast<std::size_t>(row / (kv * g))] + 1;
    std::vector<double> sum(static_cast<std::size_t>(e), 0.0);
    double total = 0;
    for (std::int64_t key = 0; key < visible; ++key) {
      const std::size_t base = static_cast<std::size_t>(((batch * c + key) * kv + head) * e);
      double dot = 0;
      for (std::size_t j = 0; j < static_cast<std::size_t>(e); ++j) {
        dot += static_cast<double>(q_values[static_cast<std::size_t>(row * e) + j]) *
               static_cast<double>(k_values[base + j]);
      }
      const double weight = std::exp(0.5 * dot);  // small scores: the maximum need not be taken out
      total += weight;
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += weight * static_cast<double>(v_values[base + j]);
    }
    for (std::size_t j = 0; j < sum.size(); ++j) {
      const double expected = visible > 0 ? sum[j] / total : 0;
      // |values| <= 1: one rounding to f32 is at most 2^-25, the rest is in double.
      ASSERT_NEAR(static_cast<double>(out[static_cast<std::size_t>(row * e) + j]), expected, 0x1p-24) << row;
    }
  }
}

TEST(ReferenceSwiglu, AgreesWithItsFormula) {
  const std::int64_t m = 3, f = 10, d = 32;
  const std::vector<float> x = noise(static_cast<std::size_t>(m * d), 21);
  const std::vector<float> gate = noise(static_cast<std::size_t>(f * d), 22);
  const std::vector<float> up = noise(static_cast<std::size_t>(f * d), 23);
  const Tensor a = f32({1, m, d}, x);
  const Tensor wg = f32({f, d}, gate);
  const Tensor wu = f32({f, d}, up);
  const std::vector<float> out = run_f32("swiglu_mlp.reference", {a.view, wg.view, wu.view}, {1, m, f});
  for (std::int64_t i = 0; i < m * f; ++i) {
    double z = 0;
    double y = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const double value = static_cast<double>(x[static_cast<std::size_t>(i / f * d + j)]);
      z += value * static_cast<double>(gate[static_cast<std::size_t>(i % f * d + j)]);
      y += value * static_cast<double>(up[static_cast<std::size_t>(i % f * d + j)]);
    }
    const double expected = z / (1 + std::exp(-z)) * y;
    ASSERT_NEAR(static_cast<double>(out[static_cast<std::size_t>(i)]), expected,
                std::fabs(expected) * 0x1p-23)
        << i;
  }
}

TEST(ReferenceQuantize, BlocksOfEachRow) {
  const std::vector<float> values = noise(3 * 64, 31);
  const Tensor x = f32({3, 64}, values);
  Tensor out(DType::Q8A, {3, 64});
  run_kernel("quantize_q8a.reference", {}, {x.view}, {out.view});
  const auto* blocks = reinterpret_cast<const BlockQ8A*>(out.bytes.data());
  for (std::size_t i = 0; i < 6; ++i) {
    const BlockQ8A expected = encode_q8a_block(values.data() + 32 * i);
    EXPECT_EQ(std::memcmp(&blocks[i], &expected, sizeof(expected)), 0) << i;
  }
}

}  // namespace
}  // namespace hone::test
