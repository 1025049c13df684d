// The reference kernels of the primitive ops against small tables worked out by hand.
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "call_kernel.h"
#include "kernels/strip_program.h"
#include "tensor/block_formats.h"

namespace hone::test {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ReferenceRegistry, KernelsAreLastAndNamed) {
  bool seen_reference = false;
  for (const Kernel& kernel : all_kernels()) {
    if (kernel.reference) {
      seen_reference = true;
      EXPECT_EQ(kernel.name, std::string(kernel.op) + ".reference");
    } else {
      EXPECT_FALSE(seen_reference) << kernel.name << " stands behind a reference kernel";
    }
    EXPECT_NE(kernel.accepts, nullptr);
    EXPECT_NE(kernel.tile_count, nullptr);
    EXPECT_NE(kernel.run, nullptr);
  }
  for (const char* op :
       {"cast", "add", "select", "reduce_sum", "matmul", "gather", "concat", "iota", "copy", "state_append",
        "rms_norm", "softmax", "rope", "attention", "swiglu_mlp", "quantize_q8a", "fused_elementwise"}) {
    EXPECT_NE(find_kernel(std::string(op) + ".reference"), nullptr) << op;
  }
}

TEST(ReferenceElementwise, UnaryTables) {
  const Tensor x = f32({4}, {0.25f, 1.0f, 4.0f, 2.0f});
  const auto unary = [&](std::string_view name) {
    return run_f32(std::string(name) + ".reference", {x.view}, {4});
  };
  EXPECT_EQ(unary("neg"), (std::vector<float>{-0.25f, -1, -4, -2}));
  EXPECT_EQ(unary("sqrt"), (std::vector<float>{0.5f, 1, 2, 1.41421356f}));
  EXPECT_EQ(unary("rsqrt"), (std::vector<float>{2, 1, 0.5f, 0.707106781f}));
  EXPECT_EQ(unary("exp"), (std::vector<float>{1.28402542f, 2.71828183f, 54.5981500f, 7.38905610f}));
  EXPECT_EQ(unary("log"), (std::vector<float>{-1.38629436f, 0, 1.38629436f, 0.693147181f}));
  EXPECT_EQ(unary("sin"), (std::vector<float>{0.247403959f, 0.841470985f, -0.756802495f, 0.909297427f}));
  EXPECT_EQ(unary("cos"), (std::vector<float>{0.968912422f, 0.540302306f, -0.653643621f, -0.416146837f}));
  EXPECT_EQ(unary("tanh"), (std::vector<float>{0.244918662f, 0.761594156f, 0.999329300f, 0.964027580f}));
  const Tensor negative = f32({2}, {-3, -0.0f});
  const std::vector<float> magnitude = run_f32("abs.reference", {negative.view}, {2});
  EXPECT_EQ(magnitude[0], 3);
  EXPECT_FALSE(std::signbit(magnitude[1]));
}

// f32 arithmetic through double gives the IEEE result: compared with the hardware's own f32 operations.
TEST(ReferenceElementwise, F32ArithmeticIsCorrectlyRounded) {
  std::vector<float> a;
  std::vector<float> b;
  std::uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 1664525u + 1013904223u;
    const std::uint32_t first = state;
    state = state * 1664525u + 1013904223u;
    a.push_back(std::bit_cast<float>(first));
    b.push_back(i % 2 == 0 ? std::bit_cast<float>(state)
                           : std::bit_cast<float>((first & 0xff800000u) | (state >> 9)));
  }
  const Tensor x = f32({20000}, a);
  const Tensor y = f32({20000}, b);
  const auto binary = [&](std::string_view name) { return run_f32(name, {x.view, y.view}, {20000}); };
  const std::vector<float> sum = binary("add.reference");
  const std::vector<float> difference = binary("sub.reference");
  const std::vector<float> product = binary("mul.reference");
  const std::vector<float> quotient = binary("div.reference");
  const auto same = [](float p, float q) {
    return std::bit_cast<std::uint32_t>(p) == std::bit_cast<std::uint32_t>(q) ||
           (std::isnan(p) && std::isnan(q));
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(same(sum[i], a[i] + b[i])) << a[i] << " + " << b[i];
    ASSERT_TRUE(same(difference[i], a[i] - b[i])) << a[i] << " - " << b[i];
    ASSERT_TRUE(same(product[i], a[i] * b[i])) << a[i] << " * " << b[i];
    ASSERT_TRUE(same(quotient[i], a[i] / b[i])) << a[i] << " / " << b[i];
  }
}

TEST(ReferenceElementwise, BroadcastAndStrides) {
  const Tensor a = f32({2, 1, 3}, {1, 2, 3, 10, 20, 30});
  const Tensor b = f32({2, 1}, {100, 200});
  EXPECT_EQ(run_f32("add.reference", {a.view, b.view}, {2, 2, 3}),
            (std::vector<float>{101, 102, 103, 201, 202, 203, 110, 120, 130, 210, 220, 230}));
  const Tensor scalar = f32({}, {2});
  EXPECT_EQ(run_f32("pow.reference", {b.view, scalar.view}, {2, 1}), (std::vector<float>{10000, 40000}));
  // A transposed view, and one whose broadcast axis has stride 0.
  Tensor matrix = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  TensorView transposed = matrix.view;
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  TensorView repeated = b.view;
  repeated.rank = 2;
  repeated.shape[0] = 3;
  repeated.shape[1] = 2;
  repeated.strides[0] = 0;
  repeated.strides[1] = 1;
  EXPECT_EQ(run_f32("sub.reference", {repeated, transposed}, {3, 2}),
            (std::vector<float>{99, 196, 98, 195, 97, 194}));
  // A strided output leaves what lies between alone.
  Tensor out(DType::F32, {3});
  TensorView gaps = out.view;
  gaps.shape[0] = 2;
  gaps.strides[0] = 2;
  out.data<float>()[1] = 7;
  TensorView flat = b.view;
  flat.rank = 1;
  run_kernel("neg.reference", {}, {flat}, {gaps});
  EXPECT_EQ(out.values<float>(), (std::vector<float>{-100, 7, -200}));
}

TEST(ReferenceElementwise, ManyTilesAndRuns) {
  const std::int64_t rows = 37;
  const std::int64_t width = 700;  // longer than a strip, and tiles end inside rows
  Tensor x(DType::F32, {rows, width});
  for (std::int64_t i = 0; i < rows * width; ++i) x.data<float>()[i] = static_cast<float>(i);
  const std::vector<float> out = run_f32("add.reference", {x.view, x.view}, {rows, width});
  for (std::int64_t i = 0; i < rows * width; ++i) {
    ASSERT_EQ(out[static_cast<std::size_t>(i)], static_cast<float>(2 * i));
  }
}

TEST(ReferenceElementwise, ComparisonsLogicSelectAndNan) {
  const Tensor a = f32({5}, {1, 2, 3, kNan, kInf});
  const Tensor b = f32({5}, {2, 2, 2, 1, kInf});
  const auto compare = [&](std::string_view name) {
    Tensor out(DType::Bool, {5});
    run_kernel(name, {}, {a.view, b.view}, {out.view});
    return out.values<std::uint8_t>();
  };
  using Bools = std::vector<std::uint8_t>;
  EXPECT_EQ(compare("less.reference"), (Bools{1, 0, 0, 0, 0}));
  EXPECT_EQ(compare("less_equal.reference"), (Bools{1, 1, 0, 0, 1}));
  EXPECT_EQ(compare("equal.reference"), (Bools{0, 1, 0, 0, 1}));
  for (const char* name : {"max.reference", "min.reference"}) {
    EXPECT_TRUE(std::isnan(run_f32(name, {a.view, b.view}, {5})[3])) << name;
    EXPECT_TRUE(std::isnan(run_f32(name, {b.view, a.view}, {5})[3])) << name;
  }
  EXPECT_EQ(run_f32("max.reference", {a.view, b.view}, {5})[2], 3);
  EXPECT_EQ(run_f32("min.reference", {a.view, b.view}, {5})[2], 2);

  const Tensor p = make<std::uint8_t>(DType::Bool, {4}, {0, 0, 1, 1});
  const Tensor q = make<std::uint8_t>(DType::Bool, {4}, {0, 1, 0, 1});
  Tensor out(DType::Bool, {4});
  run_kernel("and.reference", {}, {p.view, q.view}, {out.view});
  EXPECT_EQ(out.values<std::uint8_t>(), (Bools{0, 0, 0, 1}));
  run_kernel("or.reference", {}, {p.view, q.view}, {out.view});
  EXPECT_EQ(out.values<std::uint8_t>(), (Bools{0, 1, 1, 1}));
  run_kernel("not.reference", {}, {p.view}, {out.view});
  EXPECT_EQ(out.values<std::uint8_t>(), (Bools{1, 1, 0, 0}));
  const Tensor zero = f32({}, {0});
  const Tensor x = f32({4}, {5, 6, 7, kNan});
  const std::vector<float> chosen = run_f32("select.reference", {q.view, zero.view, x.view}, {4});
  EXPECT_EQ(chosen, (std::vector<float>{5, 0, 7, 0}));
}

TEST(ReferenceElementwise, IntegersWrapAndKeepAllBits) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;  // not a double
  const Tensor a = make<std::int64_t>(DType::I64, {2}, {large, -5});
  const Tensor b = make<std::int64_t>(DType::I64, {2}, {2, 3});
  Tensor out(DType::I64, {2});
  run_kernel("sub.reference", {}, {a.view, b.view}, {out.view});
  EXPECT_EQ(out.values<std::int64_t>(), (std::vector<std::int64_t>{large - 2, -8}));
  const Tensor c = i32({2}, {2147483647, -3});
  Tensor narrow(DType::I32, {2});
  run_kernel("add.reference", {}, {c.view, c.view}, {narrow.view});
  EXPECT_EQ(narrow.values<std::int32_t>(), (std::vector<std::int32_t>{-2, -6}));
}

TEST(ReferenceElementwise, CastDecodesBlocksOfQ8a) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.37F - 9;
  Tensor blocks(DType::Q8A, {2, 32});
  ASSERT_TRUE(encode_row(DType::Q8A, values.data(), 64, blocks.view.data).ok());
  std::vector<float> decoded(64);
  ASSERT_TRUE(decode_row(DType::Q8A, blocks.view.data, 64, decoded.data()).ok());
  EXPECT_EQ(run_f32("cast.reference", {blocks.view}, {2, 32}), decoded);
  EXPECT_NE(decoded, values);
}

TEST(ReferenceElementwise, Casts) {
  const Tensor x = f32({6}, {1.9f, -1.9f, 3e9f, -3e9f, kNan, 300});
  Tensor ints(DType::I32, {6});
  run_kernel("cast.reference", {}, {x.view}, {ints.view});
  EXPECT_EQ(ints.values<std::int32_t>(),
            (std::vector<std::int32_t>{1, -1, 2147483647, std::numeric_limits<std::int32_t>::min(), 0, 300}));
  Tensor bytes(DType::U8, {6});
  run_kernel("cast.reference", {}, {x.view}, {bytes.view});
  EXPECT_EQ(bytes.values<std::uint8_t>(), (std::vector<std::uint8_t>{1, 0, 255, 0, 0, 255}));
  // f64 to f16 in one rounding: by way of f32 this value would become a tie and go to 1.
  const Tensor wide = make<double>(DType::F64, {1}, {1 + 0x1p-11 + 0x1p-40});
  Tensor half(DType::F16, {1});
  run_kernel("cast.reference", {}, {wide.view}, {half.view});
  EXPECT_EQ(half.values<std::uint16_t>()[0], 0x3c01);
  // i64 to f32 in one rounding: by way of f64 this value would become a tie and go to 2^60.
  const Tensor odd =
      make<std::int64_t>(DType::I64, {1}, {(std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1});
  EXPECT_EQ(run_f32("cast.reference", {odd.view}, {1})[0], 0x1p60f + 0x1p37f);
  const Tensor truth = make<std::uint8_t>(DType::Bool, {2}, {1, 0});
  EXPECT_EQ(run_f32("cast.reference", {truth.view}, {2}), (std::vector<float>{1, 0}));
}

TEST(ReferenceElementwise, HalvesRoundOnce) {
  const Tensor a = encoded(DType::BF16, {2}, {256, 1});
  const Tensor b = encoded(DType::BF16, {2}, {1, 0.00390625f});
  Tensor out(DType::BF16, {2});
  run_kernel("add.reference", {}, {a.view, b.view}, {out.view});
  EXPECT_EQ(bf16_to_f32(out.values<std::uint16_t>()[0]), 256);  // 257 is a tie of 256 and 258
  EXPECT_EQ(bf16_to_f32(out.values<std::uint16_t>()[1]), 1);
}

TEST(ReferenceElementwise, QuantisedOperandsAreRefused) {
  const Tensor a(DType::Q8_0, {32});
  const Tensor out(DType::F32, {32});
  EXPECT_NE(refusal(*find_kernel("neg.reference"), {}, {a.view}, {out.view}), "");
}

// silu, one value stored as f16 and one as f32, of an f16 input: y = x / (1 + exp(-x)).
TEST(ReferenceFusedElementwise, ProgramRunsLikeItsOps) {
  StripProgram program;
  program.register_count = 3;
  program.instructions = {
      {.op = StripOp::Load, .dtype = DType::F32, .result = 0, .a = 0},
      {.op = StripOp::Neg, .dtype = DType::F32, .result = 1, .a = 0},
      {.op = StripOp::Exp, .dtype = DType::F32, .result = 1, .a = 1},
      {.op = StripOp::Constant, .dtype = DType::F32, .result = 2, .constant = 1},
      {.op = StripOp::Add, .dtype = DType::F32, .result = 1, .a = 1, .b = 2},
      {.op = StripOp::Div, .dtype = DType::F32, .result = 1, .a = 0, .b = 1},
      {.op = StripOp::Load, .dtype = DType::F32, .result = 2, .a = 1},
      {.op = StripOp::Mul, .dtype = DType::F32, .result = 0, .a = 1, .b = 2},
      {.op = StripOp::Store, .dtype = DType::F16, .a = 0, .b = 1},
      {.op = StripOp::Store, .dtype = DType::F32, .a = 0, .b = 0},
  };
  std::vector<float> values;
  for (int i = 0; i < 600; ++i) values.push_back(static_cast<float>(i - 300) / 32);
  const Tensor x = encoded(DType::F16, {2, 300}, values);
  const Tensor gain = f32({2, 1}, {1, 3});
  Tensor out(DType::F32, {2, 300});
  Tensor half(DType::F16, {2, 300});
  run_kernel("fused_elementwise.reference", {}, {x.view, gain.view}, {out.view, half.view}, &program);
  for (std::size_t i = 0; i < 600; ++i) {
    const float e = static_cast<float>(std::exp(-static_cast<double>(values[i])));
    const float expected = values[i] / (e + 1.0f) * (i < 300 ? 1.0f : 3.0f);
    ASSERT_EQ(out.values<float>()[i], expected) << i;
    ASSERT_EQ(half.values<std::uint16_t>()[i], f32_to_f16(expected)) << i;
  }
}

TEST(ReferenceReduce, EveryAxis) {
  const Tensor x = f32({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto reduce = [&](std::string_view name, std::int64_t axis, std::vector<std::int64_t> shape) {
    return run_f32(name, {x.view}, std::move(shape), {{"axis", axis}});
  };
  EXPECT_EQ(reduce("reduce_sum.reference", 0, {3, 2}), (std::vector<float>{8, 10, 12, 14, 16, 18}));
  EXPECT_EQ(reduce("reduce_sum.reference", 1, {2, 2}), (std::vector<float>{9, 12, 27, 30}));
  EXPECT_EQ(reduce("reduce_sum.reference", -1, {2, 3, 1}), (std::vector<float>{3, 7, 11, 15, 19, 23}));
  EXPECT_EQ(reduce("reduce_mean.reference", 1, {2, 1, 2}), (std::vector<float>{3, 4, 9, 10}));
  EXPECT_EQ(reduce("reduce_max.reference", 0, {3, 2}), (std::vector<float>{7, 8, 9, 10, 11, 12}));
}

TEST(ReferenceReduce, ExactInDoubleAndNanSpreads) {
  std::vector<float> values(600, 1.0f);
  values[0] = 0x1p30f;
  values[599] = -0x1p30f;
  const Tensor x = f32({600}, values);
  const Attributes axis{{"axis", std::int64_t{0}}};
  EXPECT_EQ(run_f32("reduce_sum.reference", {x.view}, {}, axis)[0], 598);
  values[3] = kNan;
  const Tensor y = f32({600}, values);
  EXPECT_TRUE(std::isnan(run_f32("reduce_max.reference", {y.view}, {}, axis)[0]));
  const Tensor z = f32({2}, {-kInf, -kInf});
  EXPECT_EQ(run_f32("reduce_max.reference", {z.view}, {}, axis)[0], -kInf);
}

TEST(ReferenceData, GatherConcatIotaCopy) {
  const Tensor table = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor ids = i32({2, 2}, {2, 0, 1, 2});
  EXPECT_EQ(run_f32("gather.reference", {table.view, ids.view}, {2, 2, 2}),
            (std::vector<float>{5, 6, 1, 2, 3, 4, 5, 6}));
  const Tensor a = f32({2, 1}, {1, 2});
  const Tensor b = f32({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(run_f32("concat.reference", {a.view, b.view}, {2, 3}, {{"axis", std::int64_t{1}}}),
            (std::vector<float>{1, 3, 4, 2, 5, 6}));
  EXPECT_EQ(run_f32("concat.reference", {b.view, b.view}, {4, 2}, {{"axis", std::int64_t{-2}}}),
            (std::vector<float>{3, 4, 5, 6, 3, 4, 5, 6}));
  Tensor index(DType::I32, {2, 3, 2});
  run_kernel("iota.reference", {{"axis", std::int64_t{1}}}, {}, {index.view});
  EXPECT_EQ(index.values<std::int32_t>(), (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  // A transposed matrix made contiguous, in another shape: the reshape of a view.
  TensorView transposed = table.view;
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.strides[0], transposed.strides[1]);
  EXPECT_EQ(run_f32("copy.reference", {transposed}, {3, 2}), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  const Tensor bytes = make<std::uint8_t>(DType::U8, {3}, {1, 2, 3});
  Tensor out(DType::U8, {3});
  run_kernel("copy.reference", {}, {bytes.view}, {out.view});
  EXPECT_EQ(out.bytes, bytes.bytes);
}

TEST(ReferenceData, StateAppendSkipsPadding) {
  Tensor state(DType::F16, {2, 4, 1, 2});
  const std::vector<std::uint16_t> rows = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Tensor fresh = make(DType::F16, {2, 3, 1, 2}, rows);
  const Tensor positions = i32({2, 3}, {1, 2, 3, -1, -1, 0});
  run_kernel("state_append.reference", {}, {state.view, fresh.view, positions.view}, {state.view});
  EXPECT_EQ(state.values<std::uint16_t>(),
            (std::vector<std::uint16_t>{0, 0, 1, 2, 3, 4, 5, 6, 11, 12, 0, 0, 0, 0, 0, 0}));
  // Flattened: one row for the first sequence, one that is padding, two for the second.
  Tensor flat(DType::F16, {2, 4, 1, 2});
  const Tensor added = make(DType::F16, {1, 4, 1, 2}, std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor at = i32({1, 4}, {2, -1, 1, 0});
  const Tensor sequence = i32({1, 4}, {0, 0, 1, 1});
  run_kernel("state_append.reference", {}, {flat.view, added.view, at.view, sequence.view}, {flat.view});
  EXPECT_EQ(flat.values<std::uint16_t>(),
            (std::vector<std::uint16_t>{0, 0, 0, 0, 1, 2, 0, 0, 7, 8, 5, 6, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace hone::test
