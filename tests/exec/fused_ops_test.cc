// Each fused op against the primitives it stands for: the graph as written on reference kernels (O0), and
// after the fusing passes on the fast kernels of every instruction set (O2).
#include <gtest/gtest.h>

#include "run_graph.h"

namespace hone::test {
namespace {

constexpr std::string_view kNorm = R"(graph "g" symbols(T) {
  input %x "x": f32[T,80]
  weight %w "w": f32[80]
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %s: f32[T,80] = mul(%x, %x)
  %m: f32[T,1] = reduce_mean(%s) {axis = -1, keep_dims = 1}
  %a: f32[T,1] = add(%m, %eps)
  %r: f32[T,1] = rsqrt(%a)
  %n: f32[T,80] = mul(%x, %r)
  %y: f32[T,80] = mul(%n, %w) @"norm"
  output "y" %y
})";

constexpr std::string_view kSoftmax = R"(graph "g" symbols(T) {
  input %x0 "x": f32[T,T + 3]
  %ten: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[10.0]}
  %x: f32[T,T + 3] = mul(%x0, %ten)
  %m: f32[T,1] = reduce_max(%x) {axis = -1, keep_dims = 1}
  %d: f32[T,T + 3] = sub(%x, %m)
  %e: f32[T,T + 3] = exp(%d)
  %z: f32[T,1] = reduce_sum(%e) {axis = -1, keep_dims = 1}
  %y: f32[T,T + 3] = div(%e, %z)
  output "y" %y
})";

constexpr std::string_view kRopeHalf = R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,40]
  input %cos "cos": f32[B,T,20]
  input %sin "sin": f32[B,T,20]
  %c: f32[B,T,1,20] = reshape(%cos) {shape = dims[B, T, 1, 20]}
  %s: f32[B,T,1,20] = reshape(%sin) {shape = dims[B, T, 1, 20]}
  %first: f32[B,T,2,20] = slice(%x) {axis = 3, range = dims[0, 20]}
  %second: f32[B,T,2,20] = slice(%x) {axis = 3, range = dims[20, 40]}
  %fc: f32[B,T,2,20] = mul(%first, %c)
  %ss: f32[B,T,2,20] = mul(%second, %s)
  %a: f32[B,T,2,20] = sub(%fc, %ss)
  %sc: f32[B,T,2,20] = mul(%second, %c)
  %fs: f32[B,T,2,20] = mul(%first, %s)
  %b: f32[B,T,2,20] = add(%sc, %fs)
  %y: f32[B,T,2,40] = concat(%a, %b) {axis = 3} @"rope"
  output "y" %y
})";

constexpr std::string_view kRopePairs = R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,40]
  input %cos "cos": f32[B,T,20]
  input %sin "sin": f32[B,T,20]
  %c: f32[B,T,1,20] = reshape(%cos) {shape = dims[B, T, 1, 20]}
  %s: f32[B,T,1,20] = reshape(%sin) {shape = dims[B, T, 1, 20]}
  %pairs: f32[B,T,2,20,2] = reshape(%x) {shape = dims[B, T, 2, 20, 2]}
  %e1: f32[B,T,2,20,1] = slice(%pairs) {axis = 4, range = dims[0, 1]}
  %even: f32[B,T,2,20] = reshape(%e1) {shape = dims[B, T, 2, 20]}
  %o1: f32[B,T,2,20,1] = slice(%pairs) {axis = 4, range = dims[1, 2]}
  %odd: f32[B,T,2,20] = reshape(%o1) {shape = dims[B, T, 2, 20]}
  %ec: f32[B,T,2,20] = mul(%even, %c)
  %os: f32[B,T,2,20] = mul(%odd, %s)
  %a: f32[B,T,2,20] = sub(%ec, %os)
  %oc: f32[B,T,2,20] = mul(%odd, %c)
  %es: f32[B,T,2,20] = mul(%even, %s)
  %b: f32[B,T,2,20] = add(%oc, %es)
  %a1: f32[B,T,2,20,1] = reshape(%a) {shape = dims[B, T, 2, 20, 1]}
  %b1: f32[B,T,2,20,1] = reshape(%b) {shape = dims[B, T, 2, 20, 1]}
  %ab: f32[B,T,2,20,2] = concat(%a1, %b1) {axis = 4}
  %y: f32[B,T,2,40] = reshape(%ab) {shape = dims[B, T, 2, 40]} @"rope"
  output "y" %y
})";

// H = 6 heads on K = 2 key-value heads of E = 64.
constexpr std::string_view kAttention = R"(graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,3,T,64]
  input %kn "kn": f32[B,T,2,64]
  input %vn "vn": f32[B,T,2,64]
  input %pos "positions": i32[B,T]
  state %ks "k": f32[B,C,2,64]
  state %vs "v": f32[B,C,2,64]
  %k: f32[B,C,2,64] = state_append(%ks, %kn, %pos)
  %v: f32[B,C,2,64] = state_append(%vs, %vn, %pos)
  %kp: f32[B,2,C,64] = permute(%k) {axes = ints[0, 2, 1, 3]}
  %k5: f32[B,2,1,C,64] = reshape(%kp) {shape = dims[B, 2, 1, C, 64]}
  %vp: f32[B,2,C,64] = permute(%v) {axes = ints[0, 2, 1, 3]}
  %v5: f32[B,2,1,C,64] = reshape(%vp) {shape = dims[B, 2, 1, C, 64]}
  %scale: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.5]}
  %inf: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-inf]}
  %i: i32[C] = iota() {axis = 0, shape = dims[C]}
  %p5: i32[B,1,1,T,1] = reshape(%pos) {shape = dims[B, 1, 1, T, 1]}
  %s: f32[B,2,3,T,C] = matmul(%q, %k5) {transpose_b = 1}
  %t: f32[B,2,3,T,C] = mul(%s, %scale)
  %m: bool[B,1,1,T,C] = less_equal(%i, %p5)
  %u: f32[B,2,3,T,C] = select(%m, %t, %inf)
  %x: f32[B,2,3,T,1] = reduce_max(%u) {axis = -1, keep_dims = 1}
  %d: f32[B,2,3,T,C] = sub(%u, %x)
  %e: f32[B,2,3,T,C] = exp(%d)
  %z: f32[B,2,3,T,1] = reduce_sum(%e) {axis = -1, keep_dims = 1}
  %p: f32[B,2,3,T,C] = div(%e, %z)
  %o: f32[B,2,3,T,64] = matmul(%p, %v5)
  %a: f32[B,T,2,3,64] = permute(%o) {axes = ints[0, 3, 1, 2, 4]} @"attn"
  %y: f32[B,T,2,3,64] = neg(%a)
  output "y" %y
  update "k" %k
  update "v" %v
})";

// A window of 9 keys, scores capped at 2, values of 24 beside keys of 40.
constexpr std::string_view kWindow = R"(graph "g" symbols(B, T, C) {
  input %q "q": f32[B,2,3,T,40]
  input %kn "kn": f32[B,T,2,40]
  input %vn "vn": f32[B,T,2,24]
  input %pos "positions": i32[B,T]
  state %ks "k": f32[B,C,2,40]
  state %vs "v": f32[B,C,2,24]
  %k: f32[B,C,2,40] = state_append(%ks, %kn, %pos)
  %v: f32[B,C,2,24] = state_append(%vs, %vn, %pos)
  %kp: f32[B,2,C,40] = permute(%k) {axes = ints[0, 2, 1, 3]}
  %k5: f32[B,2,1,C,40] = reshape(%kp) {shape = dims[B, 2, 1, C, 40]}
  %vp: f32[B,2,C,24] = permute(%v) {axes = ints[0, 2, 1, 3]}
  %v5: f32[B,2,1,C,24] = reshape(%vp) {shape = dims[B, 2, 1, C, 24]}
  %cap: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %inf: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-inf]}
  %nine: i32[] = constant() {dtype = "i32", shape = dims[], values = reals[9.0]}
  %i: i32[C] = iota() {axis = 0, shape = dims[C]}
  %p5: i32[B,1,1,T,1] = reshape(%pos) {shape = dims[B, 1, 1, T, 1]}
  %first: i32[B,1,1,T,1] = sub(%p5, %nine)
  %above: bool[B,1,1,T,C] = less(%first, %i)
  %below: bool[B,1,1,T,C] = less_equal(%i, %p5)
  %m: bool[B,1,1,T,C] = and(%above, %below)
  %s: f32[B,2,3,T,C] = matmul(%q, %k5) {transpose_b = 1}
  %t: f32[B,2,3,T,C] = div(%s, %cap)
  %h: f32[B,2,3,T,C] = tanh(%t)
  %c: f32[B,2,3,T,C] = mul(%h, %cap)
  %u: f32[B,2,3,T,C] = select(%m, %c, %inf)
  %x: f32[B,2,3,T,1] = reduce_max(%u) {axis = -1, keep_dims = 1}
  %d: f32[B,2,3,T,C] = sub(%u, %x)
  %e: f32[B,2,3,T,C] = exp(%d)
  %z: f32[B,2,3,T,1] = reduce_sum(%e) {axis = -1, keep_dims = 1}
  %p: f32[B,2,3,T,C] = div(%e, %z)
  %o: f32[B,2,3,T,24] = matmul(%p, %v5)
  %a: f32[B,T,2,3,24] = permute(%o) {axes = ints[0, 3, 1, 2, 4]} @"attn"
  %y: f32[B,T,2,3,24] = neg(%a)
  output "y" %y
  update "k" %k
  update "v" %v
})";

constexpr std::string_view kMlp = R"(graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %wg "gate": q8_0[96,64]
  weight %wu "up": q8_0[96,64]
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %g: f32[T,96] = matmul(%x, %wg) {transpose_b = 1}
  %u: f32[T,96] = matmul(%x, %wu) {transpose_b = 1}
  %n: f32[T,96] = neg(%g)
  %e: f32[T,96] = exp(%n)
  %d: f32[T,96] = add(%e, %one)
  %s: f32[T,96] = div(%g, %d)
  %y: f32[T,96] = mul(%s, %u) @"mlp"
  output "y" %y
})";

constexpr std::string_view kGeglu = R"(graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %wg "gate": q8_0[96,64]
  weight %wu "up": q8_0[96,64]
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %c5: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.5]}
  %c3: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.044715]}
  %cs: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.7978845608028654]}
  %g: f32[T,96] = matmul(%x, %wg) {transpose_b = 1}
  %u: f32[T,96] = matmul(%x, %wu) {transpose_b = 1}
  %g2: f32[T,96] = mul(%g, %g)
  %g3: f32[T,96] = mul(%g2, %g)
  %k: f32[T,96] = mul(%g3, %c3)
  %a: f32[T,96] = add(%g, %k)
  %i: f32[T,96] = mul(%a, %cs)
  %t: f32[T,96] = tanh(%i)
  %f: f32[T,96] = add(%t, %one)
  %h: f32[T,96] = mul(%g, %c5)
  %s: f32[T,96] = mul(%h, %f)
  %y: f32[T,96] = mul(%s, %u) @"mlp"
  output "y" %y
})";

constexpr std::string_view kOffsetNorm = R"(graph "g" symbols(T) {
  input %x "x": f32[T,80]
  weight %w "w": f32[80]
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %w1: f32[80] = add(%w, %one)
  %s: f32[T,80] = mul(%x, %x)
  %m: f32[T,1] = reduce_mean(%s) {axis = -1, keep_dims = 1}
  %a: f32[T,1] = add(%m, %eps)
  %r: f32[T,1] = rsqrt(%a)
  %n: f32[T,80] = mul(%x, %r)
  %y: f32[T,80] = mul(%n, %w1) @"norm"
  output "y" %y
})";

// Three of eleven experts per token, the tokens' rows shared; then one row for each chosen expert.
constexpr std::string_view kExperts = R"(graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %router "router": f32[11,64]
  weight %w1 "first": q8_0[11,72,64]
  weight %w2 "second": f32[11,24,72]
  %logits: f32[T,11] = matmul(%x, %router) {transpose_b = 1}
  %ids: i32[T,3] = top_k(%logits) {k = 3}
  %picked: f32[T,3] = take_along_axis(%logits, %ids) {axis = -1}
  %x3: f32[T,1,64] = reshape(%x) {shape = dims[T, 1, 64]}
  %h: f32[T,3,72] = expert_matmul(%x3, %w1, %ids)
  %o: f32[T,3,24] = expert_matmul(%h, %w2, %ids)
  %p: f32[T,1,3] = reshape(%picked) {shape = dims[T, 1, 3]}
  %y1: f32[T,1,24] = matmul(%p, %o)
  %y2: f32[T,24] = reshape(%y1) {shape = dims[T, 24]}
  %y: f32[T,24] = neg(%y2)
  output "y" %y
})";

// No op of this chain rounds more than once, so the strips must give the reference's bits.
constexpr std::string_view kChain = R"(graph "g" symbols(T) {
  input %x "x": f16[T,70]
  input %b "b": f32[70]
  %two: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %w: f32[T,70] = cast(%x) {to = "f32"}
  %a: f32[T,70] = mul(%w, %two)
  %s: f32[T,70] = add(%a, %b)
  %c: bool[T,70] = less(%s, %w)
  %d: f32[T,70] = select(%c, %s, %two)
  %y: f32[T,70] = div(%d, %b) @"tail"
  output "y" %y
})";

constexpr std::string_view kExpChain = R"(graph "g" symbols(T) {
  input %x "x": f32[T,70]
  %n: f32[T,70] = neg(%x)
  %e: f32[T,70] = exp(%n)
  %y: f32[T,70] = add(%e, %x) @"tail"
  output "y" %y
})";

struct Case {
  const char* name;
  const char* op;  // that the passes must make of it
  std::string_view text;
  double additions;  // behind one element of y: 0 if both must have the same bits
  std::vector<StepSizes> steps;
};

const std::vector<StepSizes> kTokens{{{{'T', 1}}, 0}, {{{'T', 5}}, 1}, {{{'T', 33}}, 2}};
const std::vector<StepSizes> kBatches{{{{'B', 1}, {'T', 1}}, 0}, {{{'B', 3}, {'T', 7}}, 1}};
// A prompt of 37 tokens, one more, then a chunk of four.
const std::vector<StepSizes> kCached{{{{'B', 2}, {'T', 37}, {'C', 37}}, 0},
                                     {{{'B', 2}, {'T', 1}, {'C', 38}}, 37},
                                     {{{'B', 2}, {'T', 4}, {'C', 42}}, 38}};

const Case kCases[] = {
    {"RmsNorm", "rms_norm", kNorm, 80, kTokens},
    {"Softmax", "softmax", kSoftmax, 36, kTokens},
    {"RopeHalf", "rope", kRopeHalf, 2, kBatches},
    {"RopePairs", "rope", kRopePairs, 2, kBatches},
    {"Attention", "attention", kAttention, 64 + 2 * 42, kCached},
    {"AttentionInAWindow", "attention", kWindow, 40 + 2 * 42, kCached},
    {"RmsNormWithOffset", "rms_norm", kOffsetNorm, 80, kTokens},
    {"GegluMlp", "geglu_mlp", kGeglu, 64, kTokens},
    {"SwigluMlp", "swiglu_mlp", kMlp, 64, kTokens},
    {"ElementwiseExact", "fused_elementwise", kChain, 0, kTokens},
    {"ElementwiseExp", "fused_elementwise", kExpChain, 1, kTokens},
};

const Bindings kBound{{'B', 3}, {'T', 64}, {'C', 64}};

std::vector<StepSizes> with_all_symbols(std::vector<StepSizes> steps) {
  for (StepSizes& step : steps) {
    for (const char symbol : {'B', 'T', 'C'}) {
      if (!step.bindings.find(symbol)) step.bindings.set(symbol, 1);
    }
  }
  return steps;
}

// What a failure prints of its case.
void PrintTo(const Case& test, std::ostream* out) {
  *out << test.name;
}

class FusedOp : public ::testing::TestWithParam<Case> {
 protected:
  static GraphRun run(Level level, Isa isa, int threads = 2) {
    const Result<GraphRun> done =
        run_graph(GetParam().text, level, isa, kBound, with_all_symbols(GetParam().steps), threads);
    if (!done.ok()) {
      ADD_FAILURE() << describe(done.error());
      return {};
    }
    return *done;
  }
};

// Roundings of a sum of n terms add up like a random walk: sqrt(n) * 2^-24 of the result. A factor of 8 for
// the worst of some thousand elements.
TEST_P(FusedOp, ComputesWhatItsPrimitivesDo) {
  const Case& test = GetParam();
  const GraphRun reference = run(Level::O0, Isa::Portable);
  ASSERT_EQ(reference.outputs.size(), test.steps.size());
  EXPECT_FALSE(has_op(reference, test.op));
  for (const Isa isa : kIsaLevels) {
    if (isa > detect_isa()) continue;
    const GraphRun fused = run(Level::O2, isa);
    ASSERT_EQ(fused.outputs.size(), test.steps.size());
    EXPECT_TRUE(has_op(fused, test.op)) << "nothing was fused";
    EXPECT_LT(fused.ops.size(), reference.ops.size());
    for (std::size_t i = 0; i < test.steps.size(); ++i) {
      SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", step " << i);
      const std::vector<float>& y = fused.outputs[i];
      const std::vector<float>& expected = reference.outputs[i];
      ASSERT_EQ(y.size(), expected.size());
      double magnitude = 0;
      double error = 0;
      for (std::size_t k = 0; k < y.size(); ++k) {
        ASSERT_TRUE(std::isfinite(y[k]));
        magnitude = std::max(magnitude, std::abs(static_cast<double>(expected[k])));
        error = std::max(error, std::abs(static_cast<double>(y[k]) - static_cast<double>(expected[k])));
      }
      EXPECT_GT(magnitude, 0.01);
      EXPECT_LE(error, 8 * 0x1p-24 * std::sqrt(test.additions) * magnitude);
    }
  }
}

TEST_P(FusedOp, HasTheSameBitsOnEveryInstructionSet) {
  const GraphRun portable = run(Level::O2, Isa::Portable);
  for (const Isa isa : kIsaLevels) {
    if (isa > detect_isa()) continue;
    for (const int threads : {1, 3}) {
      const GraphRun other = run(Level::O2, isa, threads);
      EXPECT_EQ(other.outputs, portable.outputs) << isa_name(isa) << ", " << threads << " threads";
    }
  }
  if (detect_isa() < Isa::Avx512) GTEST_SKIP() << "this machine has no " << isa_name(Isa::Avx512);
}

// Routed experts: loaded and packed one matrix behind the other, chosen, multiplied.
TEST(Experts, AgreeWithTheReferenceKernelsOnEveryInstructionSet) {
  const std::vector<StepSizes> steps = with_all_symbols(kTokens);
  const Result<GraphRun> reference = run_graph(kExperts, Level::O0, Isa::Portable, kBound, steps, 2);
  ASSERT_TRUE(reference.ok()) << describe(reference.error());
  const Result<GraphRun> portable = run_graph(kExperts, Level::O2, Isa::Portable, kBound, steps, 2);
  ASSERT_TRUE(portable.ok()) << describe(portable.error());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<float>& expected = reference->outputs[i];
    ASSERT_EQ(portable->outputs[i].size(), expected.size());
    double magnitude = 0;
    double error = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      const auto wanted = static_cast<double>(expected[k]);
      magnitude = std::max(magnitude, std::abs(wanted));
      error = std::max(error, std::abs(static_cast<double>(portable->outputs[i][k]) - wanted));
    }
    EXPECT_GT(magnitude, 1);
    // As above, with the products of 64, 72 and 3 terms one behind the other.
    EXPECT_LE(error, 8 * 0x1p-24 * std::sqrt(64.0 + 72 + 3) * magnitude) << "step " << i;
  }
  for (const Isa isa : kIsaLevels) {
    if (isa > detect_isa()) continue;
    for (const int threads : {1, 3}) {
      const Result<GraphRun> other = run_graph(kExperts, Level::O2, isa, kBound, steps, threads);
      ASSERT_TRUE(other.ok()) << describe(other.error());
      EXPECT_EQ(other->outputs, portable->outputs) << isa_name(isa) << ", " << threads << " threads";
    }
  }
}

// A tensor per expert, as Hugging Face checkpoints have them, or one tensor for all, as GGUF has it.
TEST(Experts, OfOneTensorEachAreThoseOfOneTensor) {
  std::string stacked(kExperts);
  stacked.insert(stacked.find("first\"") + 2, 1, '*');
  stacked.insert(stacked.find("second\"") + 2, 1, '*');
  const std::vector<StepSizes> steps = with_all_symbols(kTokens);
  for (const Level level : {Level::O0, Level::O2}) {
    const Result<GraphRun> one = run_graph(kExperts, level, detect_isa(), kBound, steps, 2);
    const Result<GraphRun> many = run_graph(stacked, level, detect_isa(), kBound, steps, 2);
    ASSERT_TRUE(one.ok()) << describe(one.error());
    ASSERT_TRUE(many.ok()) << describe(many.error());
    EXPECT_EQ(one->outputs, many->outputs);
  }
}

std::string test_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Ops, FusedOp, ::testing::ValuesIn(kCases), test_name);

}  // namespace
}  // namespace hone::test
