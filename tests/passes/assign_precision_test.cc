#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"
#include "passes/precision.h"

namespace hone::test {
namespace {

PassContext context_of(DType kv, bool int8) {
  PassContext context;
  context.precision.kv = kv;
  context.precision.int8_activations = int8;
  return context;
}

const std::string_view kMatmuls = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w0 "a": q4_0[8,64]
  weight %w1 "b": q4_1[8,64]
  weight %w2 "c": q8_0[8,64]
  %0: f32[T,8] = matmul(%x, %w0) {transpose_b = 1} @"first"
  %1: f32[T,8] = matmul(%x, %w1) {transpose_b = 1}
  %2: f32[T,64] = neg(%x)
  %3: f32[T,8] = matmul(%2, %w2) {transpose_b = 1}
  %4: f32[T] = reduce_sum(%0) {axis = -1, keep_dims = 0}
  %5: f32[T] = reduce_sum(%1) {axis = -1, keep_dims = 0}
  %6: f32[T] = reduce_sum(%3) {axis = -1, keep_dims = 0}
  output "0" %4
  output "1" %5
  output "3" %6
}
)");

TEST(AssignPrecision, OneQuantiseForAllReadersOfOneValue) {
  EXPECT_EQ(after("assign-precision", kMatmuls, context_of(DType::F32, true)), text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w0 "a": q4_0[8,64]
  weight %w1 "b": q4_1[8,64]
  weight %w2 "c": q8_0[8,64]
  %11: q8a[T,64] = quantize_q8a(%x) @"first"
  %0: f32[T,8] = matmul(%11, %w0) {transpose_b = 1} @"first"
  %1: f32[T,8] = matmul(%11, %w1) {transpose_b = 1}
  %2: f32[T,64] = neg(%x)
  %12: q8a[T,64] = quantize_q8a(%2)
  %3: f32[T,8] = matmul(%12, %w2) {transpose_b = 1}
  %4: f32[T] = reduce_sum(%0) {axis = -1, keep_dims = 0}
  %5: f32[T] = reduce_sum(%1) {axis = -1, keep_dims = 0}
  %6: f32[T] = reduce_sum(%3) {axis = -1, keep_dims = 0}
  output "0" %4
  output "1" %5
  output "3" %6
}
)"));
}

// A product that nothing but elementwise nodes and views part from the outputs takes two terms.
TEST(AssignPrecision, TheLastProductTakesTwoTerms) {
  const std::string_view in = text(R"(
graph "g" symbols(R) {
  input %x "x": f32[R,64]
  weight %w "w": q4_0[8,64]
  %0: f32[R,8] = matmul(%x, %w) {transpose_b = 1} @"lm_head"
  %1: f32[R,8] = tanh(%0)
  output "logits" %1
}
)");
  EXPECT_EQ(after("assign-precision", in, context_of(DType::F32, true)), text(R"(
graph "g" symbols(R) {
  input %x "x": f32[R,64]
  weight %w "w": q4_0[8,64]
  %4: q8a[R,2,64] = quantize_q8a(%x) {terms = 2} @"lm_head"
  %0: f32[R,8] = projection(%4, %w) {sections = ints[1, -1, 0, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0], terms = 2} @"lm_head" body "projection" symbols(R) {
    input %0 "0": q8a[R,2,64]
    input %1 "1": q4_0[8,64]
    %2: f32[R,2,64] = cast(%0) {to = "f32"}
    %3: f32[R,64] = reduce_sum(%2) {axis = -2, keep_dims = 0}
    %4: f32[R,8] = matmul(%3, %1) {transpose_b = 1}
    output "0" %4
  }
  %1: f32[R,8] = tanh(%0)
  output "logits" %1
}
)"));
}

const std::string_view kStates = text(R"(
graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,T,64]
  input %r "r": f32[B,T,2,64]
  input %p "p": i32[B,T]
  state %s "k": f32[B,C,2,64]
  %0: f32[B,C,2,64] = state_append(%s, %r, %p) @"attn"
  %1: f32[B,2,C,64] = permute(%0) {axes = ints[0, 2, 1, 3]}
  %2: f32[B,2,T,C] = matmul(%q, %1) {transpose_b = 1}
  %3: f32[B,2,C,64] = neg(%1)
  output "scores" %2
  output "n" %3
  update "k" %0
}
)");

// One quantisation of two terms for all products of one x, the gated MLP with its body behind the sum.
const std::string_view kMlp = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %wg "gate": q8_0[32,64]
  weight %wu "up": q8_0[32,64]
  weight %w "w": q4_1[32,64]
  %g: f32[B,T,32] = swiglu_mlp(%x, %wg, %wu) @"mlp" body "swiglu_mlp" symbols(B, T) {
    input %0 "0": f32[B,T,64]
    input %1 "1": q8_0[32,64]
    input %2 "2": q8_0[32,64]
    %3: f32[B,T,32] = matmul(%0, %1) {transpose_b = 1}
    %4: f32[B,T,32] = matmul(%0, %2) {transpose_b = 1}
    %5: f32[B,T,32] = mul(%3, %4)
    output "0" %5
  }
  %y: f32[B,T,32] = matmul(%x, %w) {transpose_b = 1} @"proj"
  %z: f32[B,T] = reduce_sum(%y) {axis = -1, keep_dims = 0}
  output "g" %g
  output "z" %z
}
)");

TEST(AssignPrecision, TwoTermsWhereThePolicyIsBalanced) {
  PassContext context = context_of(DType::F32, true);
  context.precision.two_terms = true;
  EXPECT_EQ(after("assign-precision", kMlp, context), text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %wg "gate": q8_0[32,64]
  weight %wu "up": q8_0[32,64]
  weight %w "w": q4_1[32,64]
  %13: q8a[B,T,2,64] = quantize_q8a(%x) {terms = 2} @"mlp"
  %g: f32[B,T,32] = projection(%13, %wg, %wu) {sections = ints[2, 1, 1, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0], terms = 2} @"mlp" body "projection" symbols(B, T) {
    input %6 "0": q8a[B,T,2,64]
    input %1 "1": q8_0[32,64]
    input %2 "2": q8_0[32,64]
    %7: f32[B,T,2,64] = cast(%6) {to = "f32"}
    %8: f32[B,T,64] = reduce_sum(%7) {axis = -2, keep_dims = 0}
    %3: f32[B,T,32] = matmul(%8, %1) {transpose_b = 1}
    %4: f32[B,T,32] = matmul(%8, %2) {transpose_b = 1}
    %5: f32[B,T,32] = mul(%3, %4)
    output "0" %5
  }
  %y: f32[B,T,32] = projection(%13, %w) {sections = ints[1, -1, 0, -1, -1, -1, -1, 0, 0, -1, -1, -1, -1, 0], terms = 2} @"proj" body "projection" symbols(B, T) {
    input %0 "0": q8a[B,T,2,64]
    input %1 "1": q4_1[32,64]
    %2: f32[B,T,2,64] = cast(%0) {to = "f32"}
    %3: f32[B,T,64] = reduce_sum(%2) {axis = -2, keep_dims = 0}
    %4: f32[B,T,32] = matmul(%3, %1) {transpose_b = 1}
    output "0" %4
  }
  %z: f32[B,T] = reduce_sum(%y) {axis = -1, keep_dims = 0}
  output "g" %g
  output "z" %z
}
)"));
}

std::string mlp_of_bf16() {
  std::string in(kMlp);
  for (int i = 0; i < 4; ++i) in = replaced(in, "q8_0[", "bf16[");
  return replaced(in, "q4_1[", "bf16[");
}

// One cast for all products of one x, the gated MLP with its body.
TEST(AssignPrecision, WeightsOfBf16TakeActivationsOfBf16) {
  PassContext context = context_of(DType::F32, true);
  const std::string in = mlp_of_bf16();
  EXPECT_EQ(after("assign-precision", in, context), in);  // blocks are for quantised weights
  context.precision.bf16_activations = true;
  std::string out =
      replaced(in, "  %g: f32", "  %13: bf16[B,T,64] = cast(%x) {to = \"bf16\"} @\"mlp\"\n  %g: f32");
  out = replaced(out, "swiglu_mlp(%x", "swiglu_mlp(%13");
  out = replaced(out, "input %0 \"0\": f32", "input %0 \"0\": bf16");
  out = replaced(out, "%y: f32[B,T,32] = matmul(%x", "%y: f32[B,T,32] = matmul(%13");
  EXPECT_EQ(after("assign-precision", in, context), out);
  // Rows that are no whole blocks of 32, and weights of two types, stay.
  std::string odd = in;
  for (const std::string_view of : {"f32[B,T,64]", "f32[B,T,64]", "bf16[32,64]", "bf16[32,64]", "bf16[32,64]",
                                    "bf16[32,64]", "bf16[32,64]"})
    odd = replaced(odd, of, of[0] == 'f' ? "f32[B,T,48]" : "bf16[32,48]");
  EXPECT_EQ(after("assign-precision", odd, context), odd);
  const std::string mixed =
      replaced(replaced(in, "%wu \"up\": bf16", "%wu \"up\": q8_0"), "%2 \"2\": bf16", "%2 \"2\": q8_0");
  EXPECT_NE(after("assign-precision", mixed, context).find("swiglu_mlp(%x"), std::string::npos);
}

// Of the two halves of the MLP the choice that rounds less holds.
TEST(AssignPrecision, RulesHoldForTheirWeights) {
  const auto dtypes = [](std::map<std::string, Activations, std::less<>> products, bool int8) {
    PassContext context = context_of(DType::F32, int8);
    context.precision.products = std::move(products);
    const Graph graph = parse(after("assign-precision", kMlp, context));
    std::string out;
    for (const Node& node : graph.nodes) {
      if (node.op == "quantize_q8a" || node.op == "reduce_sum") continue;
      out += std::string(dtype_name(graph.type(node.inputs[0]).dtype)) +
             (node.attributes.integer("terms", 1) == 2 ? "2 " : " ");
    }
    return out;
  };
  using enum Activations;
  EXPECT_EQ(dtypes({}, true), "q8a q8a ");
  EXPECT_EQ(dtypes({{"up", Q8aTwoTerms}}, true), "q8a2 q8a ");
  EXPECT_EQ(dtypes({{"up", Q8aTwoTerms}, {"gate", F32}}, true), "f32 q8a ");
  EXPECT_EQ(dtypes({{"w", F32}}, true), "q8a f32 ");
  EXPECT_EQ(dtypes({{"w", Q8a}}, false), "f32 q8a ");
  EXPECT_EQ(dtypes({{"gate", Q8a}, {"up", Q8a}}, false), "q8a f32 ");
}
TEST(AssignPrecision, RulesHoldForWeightsOfBf16) {
  using enum Activations;
  const auto reads = [](std::map<std::string, Activations, std::less<>> products, bool bf16) {
    PassContext context = context_of(DType::F32, false);
    context.precision.bf16_activations = bf16;
    context.precision.products = std::move(products);
    const std::string out = after("assign-precision", mlp_of_bf16(), context);
    return std::pair(out.find("swiglu_mlp(%x") == std::string::npos,
                     out.find("matmul(%x") == std::string::npos);
  };
  EXPECT_EQ(reads({}, true), std::pair(true, true));
  EXPECT_EQ(reads({{"up", F32}}, true), std::pair(false, true));
  EXPECT_EQ(reads({{"w", Bf16}}, false), std::pair(false, true));
  EXPECT_EQ(reads({{"up", Bf16}}, false), std::pair(false, false));
}

TEST(AssignPrecision, ExpertsHaveNoTwoTerms) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,1,64]
  input %e "experts": i32[T,2]
  weight %w "w": q8_0[4,32,64]
  %0: f32[T,2,32] = expert_matmul(%x, %w, %e) @"experts"
  output "y" %0
}
)");
  PassContext context = context_of(DType::F32, true);
  EXPECT_NE(after("assign-precision", in, context), in);
  context.precision.two_terms = true;
  EXPECT_EQ(after("assign-precision", in, context), in);
}

TEST(AssignPrecision, AStateMayHaveATypeOfItsOwn) {
  PassContext context = context_of(DType::F16, false);
  context.precision.states["k"] = DType::F32;
  EXPECT_EQ(after("assign-precision", kStates, context), kStates);
  context.precision.kv = DType::F32;
  context.precision.states["k"] = DType::BF16;
  EXPECT_EQ(parse(after("assign-precision", kStates, context)).inputs.size(), 4U);
  EXPECT_EQ(after("assign-precision", kStates, context),
            after("assign-precision", kStates, context_of(DType::BF16, false)));
}

// The append rounds, and what is no attention reads f32.
TEST(AssignPrecision, AStateOfBlocks) {
  EXPECT_EQ(after("assign-precision", kStates, context_of(DType::Q8_0, false)), text(R"(
graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,T,64]
  input %r "r": f32[B,T,2,64]
  input %p "p": i32[B,T]
  state %s "k": q8_0[B,C,2,64]
  %0: q8_0[B,C,2,64] = state_append(%s, %r, %p) @"attn"
  %8: f32[B,C,2,64] = cast(%0) {to = "f32"}
  %1: f32[B,2,C,64] = permute(%8) {axes = ints[0, 2, 1, 3]}
  %2: f32[B,2,T,C] = matmul(%q, %1) {transpose_b = 1}
  %3: f32[B,2,C,64] = neg(%1)
  output "scores" %2
  output "n" %3
  update "k" %0
}
)"));
}

TEST(AssignPrecision, AStateOfBlocksNeedsHeadsOfWholeBlocks) {
  std::string in(kStates);
  while (in.find("64") != std::string::npos) in = replaced(in, "64", "48");
  EXPECT_EQ(after("assign-precision", in, context_of(DType::Q8_0, false)),
            "pass assign-precision: attn: the KV cache cannot be of q8_0 here");
}

TEST(AssignPrecision, NothingIfNothingIsAsked) {
  EXPECT_EQ(after("assign-precision", kMatmuls), kMatmuls);
}

// kMatmuls has the three types with lanes of quants; blocks of 256 need longer rows.
TEST(AssignPrecision, EveryTypeThatAnInt8KernelReadsTakesIt) {
  for (const std::string_view type : {"q5_0", "q5_1", "q4_k", "q5_k", "q6_k"}) {
    std::string in(kMatmuls);
    while (in.find("64") != std::string::npos) in = replaced(in, "64", "256");
    for (const std::string_view old : {"q4_0", "q4_1", "q8_0"}) in = replaced(in, old, type);
    const std::string out = after("assign-precision", in, context_of(DType::F32, true));
    EXPECT_NE(out.find("q8a[T,256] = quantize_q8a(%x)"), std::string::npos) << type << "\n" << out;
    EXPECT_NE(out.find("q8a[T,256] = quantize_q8a(%2)"), std::string::npos) << type << "\n" << out;
  }
}

TEST(AssignPrecision, OtherWeightsKeepTheirActivations) {
  for (const std::string_view type : {"f32", "f16", "iq4_nl"}) {
    std::string in(kMatmuls);
    for (const std::string_view old : {"q4_0", "q4_1", "q8_0"}) in = replaced(in, old, type);
    EXPECT_EQ(after("assign-precision", in, context_of(DType::F32, true)), in) << type;
  }
}

TEST(AssignPrecision, StatesViewsAndReadersFollowTheCacheType) {
  EXPECT_EQ(after("assign-precision", kStates, context_of(DType::F16, false)), text(R"(
graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,T,64]
  input %r "r": f32[B,T,2,64]
  input %p "p": i32[B,T]
  state %s "k": f16[B,C,2,64]
  %8: f16[B,T,2,64] = cast(%r) {to = "f16"} @"attn"
  %0: f16[B,C,2,64] = state_append(%s, %8, %p) @"attn"
  %1: f16[B,2,C,64] = permute(%0) {axes = ints[0, 2, 1, 3]}
  %2: f32[B,2,T,C] = matmul(%q, %1) {transpose_b = 1}
  %9: f32[B,2,C,64] = cast(%1) {to = "f32"}
  %3: f32[B,2,C,64] = neg(%9)
  output "scores" %2
  output "n" %3
  update "k" %0
}
)"));
}

TEST(AssignPrecision, AnOutputKeepsItsType) {
  const std::string in = replaced(kStates, "output \"n\" %3", "output \"n\" %1");
  const Graph graph = parse(after("assign-precision", in, context_of(DType::BF16, false)));
  EXPECT_EQ(graph.type(graph.outputs[1].value).dtype, DType::F32);
  EXPECT_EQ(graph.type(graph.inputs[3].value).dtype, DType::BF16);
}

TEST(AssignPrecision, AStateOfAnotherTypeIsLeftAlone) {
  std::string in =
      replaced(replaced(kStates, "state %s \"k\": f32", "state %s \"k\": bf16"), "%0: f32", "%0: bf16");
  in = replaced(replaced(in, "%1: f32", "%1: bf16"), "%3: f32", "%3: bf16");
  in = replaced(in, "%r \"r\": f32", "%r \"r\": bf16");
  EXPECT_EQ(after("assign-precision", in, context_of(DType::F16, false)), in);
}

TEST(AssignPrecision, ACacheTypeWithoutKernelsIsRefused) {
  Graph graph = parse(kStates);
  const Status status = run_pass(graph, **find_pass("assign-precision"), {}, context_of(DType::Q4_0, false));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::Usage);
  EXPECT_EQ(status.error().actual, "q4_0");
}

TEST(PrecisionPolicy, FollowsTheTable) {
  for (const Isa isa : kIsaLevels) {
    const PrecisionPolicy f32 = default_policy(Level::O3, DType::F32, isa);
    EXPECT_FALSE(f32.int8_activations);
    EXPECT_EQ(f32.kv, DType::F32);
    for (const DType half : {DType::F16, DType::BF16}) {
      EXPECT_FALSE(default_policy(Level::O3, half, isa).int8_activations);
      EXPECT_EQ(default_policy(Level::O3, half, isa).bf16_activations,
                half == DType::BF16 && isa == Isa::Amx);
      EXPECT_FALSE(default_policy(Level::O2, half, isa).bf16_activations);
      EXPECT_EQ(default_policy(Level::O3, half, isa).kv, DType::F16);
    }
    for (const DType quantised : {DType::Q4_0, DType::Q4_1, DType::Q8_0}) {
      EXPECT_TRUE(default_policy(Level::O3, quantised, isa).int8_activations);
      EXPECT_EQ(default_policy(Level::O3, quantised, isa).kv, DType::F16);
      EXPECT_FALSE(default_policy(Level::O2, quantised, isa).int8_activations);
      EXPECT_EQ(default_policy(Level::O2, quantised, isa).kv, DType::F32);
    }
  }
}

}  // namespace
}  // namespace hone::test
