// Graphs that are no model of src/model: the passes match what is computed, not who computes it.
#include <gtest/gtest.h>

#include "run_graph.h"

namespace hone::test {
namespace {

// Two layers, GELU by tanh between them: f(x) = W2 gelu(W1 x + b1) + b2.
constexpr std::string_view kPerceptron = R"(graph "perceptron" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %w1 "w1": f32[96,64]
  weight %b1 "b1": f32[96]
  weight %w2 "w2": f32[48,96]
  weight %b2 "b2": f32[48]
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %c5: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.5]}
  %c3: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.044715]}
  %cs: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.7978845608028654]}
  %p1: f32[B,T,96] = matmul(%x, %w1) {transpose_b = 1}
  %g: f32[B,T,96] = add(%p1, %b1)
  %g2: f32[B,T,96] = mul(%g, %g)
  %g3: f32[B,T,96] = mul(%g2, %g)
  %k: f32[B,T,96] = mul(%g3, %c3)
  %a: f32[B,T,96] = add(%g, %k)
  %i: f32[B,T,96] = mul(%a, %cs)
  %t: f32[B,T,96] = tanh(%i)
  %f: f32[B,T,96] = add(%t, %one)
  %h: f32[B,T,96] = mul(%g, %c5)
  %s: f32[B,T,96] = mul(%h, %f)
  %p2: f32[B,T,48] = matmul(%s, %w2) {transpose_b = 1}
  %y: f32[B,T,48] = add(%p2, %b2)
  output "y" %y
})";

// Pre-norm block of an encoder: LayerNorm, attention of every token to every token by 4 heads of 16,
// addition; LayerNorm, feed-forward with silu, addition.
constexpr std::string_view kEncoder = R"(graph "encoder" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %n1 "n1": f32[64]
  weight %m1 "m1": f32[64]
  weight %wq "wq": f32[64,64]
  weight %wk "wk": f32[64,64]
  weight %wv "wv": f32[64,64]
  weight %wo "wo": f32[64,64]
  weight %bo "bo": f32[64]
  weight %n2 "n2": f32[64]
  weight %m2 "m2": f32[64]
  weight %w1 "w1": f32[96,64]
  weight %w2 "w2": f32[64,96]
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %scale: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.25]}
  %u1: f32[B,T,1] = reduce_mean(%x) {axis = -1, keep_dims = 1}
  %d1: f32[B,T,64] = sub(%x, %u1)
  %s1: f32[B,T,64] = mul(%d1, %d1)
  %v1: f32[B,T,1] = reduce_mean(%s1) {axis = -1, keep_dims = 1}
  %e1: f32[B,T,1] = add(%v1, %eps)
  %r1: f32[B,T,1] = rsqrt(%e1)
  %c1: f32[B,T,64] = mul(%d1, %r1)
  %g1: f32[B,T,64] = mul(%c1, %n1)
  %h1: f32[B,T,64] = add(%g1, %m1)
  %q: f32[B,T,64] = matmul(%h1, %wq) {transpose_b = 1}
  %k: f32[B,T,64] = matmul(%h1, %wk) {transpose_b = 1}
  %v: f32[B,T,64] = matmul(%h1, %wv) {transpose_b = 1}
  %q4: f32[B,T,4,16] = reshape(%q) {shape = dims[B, T, 4, 16]}
  %k4: f32[B,T,4,16] = reshape(%k) {shape = dims[B, T, 4, 16]}
  %v4: f32[B,T,4,16] = reshape(%v) {shape = dims[B, T, 4, 16]}
  %qh: f32[B,4,T,16] = permute(%q4) {axes = ints[0, 2, 1, 3]}
  %kh: f32[B,4,16,T] = permute(%k4) {axes = ints[0, 2, 3, 1]}
  %vh: f32[B,4,T,16] = permute(%v4) {axes = ints[0, 2, 1, 3]}
  %sc: f32[B,4,T,T] = matmul(%qh, %kh)
  %ss: f32[B,4,T,T] = mul(%sc, %scale)
  %mx: f32[B,4,T,1] = reduce_max(%ss) {axis = -1, keep_dims = 1}
  %df: f32[B,4,T,T] = sub(%ss, %mx)
  %ex: f32[B,4,T,T] = exp(%df)
  %sm: f32[B,4,T,1] = reduce_sum(%ex) {axis = -1, keep_dims = 1}
  %pr: f32[B,4,T,T] = div(%ex, %sm)
  %ao: f32[B,4,T,16] = matmul(%pr, %vh)
  %at: f32[B,T,4,16] = permute(%ao) {axes = ints[0, 2, 1, 3]}
  %ar: f32[B,T,64] = reshape(%at) {shape = dims[B, T, 64]}
  %po: f32[B,T,64] = matmul(%ar, %wo) {transpose_b = 1}
  %pb: f32[B,T,64] = add(%po, %bo)
  %x1: f32[B,T,64] = add(%x, %pb)
  %u2: f32[B,T,1] = reduce_mean(%x1) {axis = -1, keep_dims = 1}
  %d2: f32[B,T,64] = sub(%x1, %u2)
  %s2: f32[B,T,64] = mul(%d2, %d2)
  %v2: f32[B,T,1] = reduce_mean(%s2) {axis = -1, keep_dims = 1}
  %e2: f32[B,T,1] = add(%v2, %eps)
  %r2: f32[B,T,1] = rsqrt(%e2)
  %c2: f32[B,T,64] = mul(%d2, %r2)
  %g2: f32[B,T,64] = mul(%c2, %n2)
  %h2: f32[B,T,64] = add(%g2, %m2)
  %f1: f32[B,T,96] = matmul(%h2, %w1) {transpose_b = 1}
  %fn: f32[B,T,96] = neg(%f1)
  %fe: f32[B,T,96] = exp(%fn)
  %fd: f32[B,T,96] = add(%fe, %one)
  %fs: f32[B,T,96] = div(%f1, %fd)
  %f2: f32[B,T,64] = matmul(%fs, %w2) {transpose_b = 1}
  %y: f32[B,T,64] = add(%x1, %f2)
  output "y" %y
})";

// A minimal gated cell (Zhou et al. 2016) that keeps h between steps: z = sigmoid(Wz x + Uz h), c = tanh(Wc x
// + Uc (z h)), h' = h + z (c - h).
constexpr std::string_view kCell = R"(graph "cell" symbols(B) {
  input %x "x": f32[B,1,32]
  weight %wz "wz": f32[48,32]
  weight %uz "uz": f32[48,48]
  weight %wc "wc": f32[48,32]
  weight %uc "uc": f32[48,48]
  state %h "h": f32[B,1,48]
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %z1: f32[B,1,48] = matmul(%x, %wz) {transpose_b = 1}
  %z2: f32[B,1,48] = matmul(%h, %uz) {transpose_b = 1}
  %z3: f32[B,1,48] = add(%z1, %z2)
  %z4: f32[B,1,48] = neg(%z3)
  %z5: f32[B,1,48] = exp(%z4)
  %z6: f32[B,1,48] = add(%z5, %one)
  %z: f32[B,1,48] = div(%one, %z6)
  %zh: f32[B,1,48] = mul(%z, %h)
  %c1: f32[B,1,48] = matmul(%x, %wc) {transpose_b = 1}
  %c2: f32[B,1,48] = matmul(%zh, %uc) {transpose_b = 1}
  %c3: f32[B,1,48] = add(%c1, %c2)
  %c: f32[B,1,48] = tanh(%c3)
  %d: f32[B,1,48] = sub(%c, %h)
  %zd: f32[B,1,48] = mul(%z, %d)
  %n: f32[B,1,48] = add(%h, %zd)
  %y: f32[B,1,48] = neg(%n)
  %after: f32[B,1,48] = state_assign(%h, %n)
  output "y" %y
  update "h" %after
})";

struct Case {
  const char* name;
  std::string_view text;
  std::vector<std::string> launches;  // at O2
  double terms;                       // of the sums behind one element
  std::vector<StepSizes> steps;
};

const std::vector<StepSizes> kSizes{
    {{{'B', 1}, {'T', 1}}, 0}, {{{'B', 3}, {'T', 7}}, 1}, {{{'B', 2}, {'T', 33}}, 2}};
// The state goes on from step to step.
const std::vector<StepSizes> kSequence{
    {{{'B', 2}, {'T', 1}}, 0}, {{{'B', 2}, {'T', 1}}, 1}, {{{'B', 2}, {'T', 1}}, 2}};

const Case kCases[] = {
    {"Perceptron", kPerceptron, {"projection", "projection"}, 64 + 96, kSizes},
    {"Encoder",
     kEncoder,
     {"layer_norm", "projection", "attention", "projection", "layer_norm", "projection", "projection"},
     4 * 64 + 2 * 96,
     kSizes},
    // Both products of x; h's, added to the first; the gate; z h; its product, added to the second; the new
    // h; y; h again.
    {"Cell",
     kCell,
     {"projection", "projection", "fused_elementwise", "mul", "projection", "fused_elementwise", "neg",
      "copy"},
     2 * (32 + 48),
     kSequence},
};

void PrintTo(const Case& test, std::ostream* out) {
  *out << test.name;
}

class OtherGraph : public ::testing::TestWithParam<Case> {};

TEST_P(OtherGraph, ComesOutFusedAndRight) {
  const Case& test = GetParam();
  const Bindings bound{{'B', 3}, {'T', 64}, {'C', 1}};
  std::vector<StepSizes> steps = test.steps;
  for (StepSizes& step : steps) step.bindings.set('C', 1);
  const Result<GraphRun> reference = run_graph(test.text, Level::O0, Isa::Portable, bound, steps);
  ASSERT_TRUE(reference.ok()) << describe(reference.error());
  for (const Isa isa : kIsaLevels) {
    if (isa > detect_isa()) continue;
    const Result<GraphRun> fused = run_graph(test.text, Level::O2, isa, bound, steps);
    ASSERT_TRUE(fused.ok()) << describe(fused.error());
    EXPECT_EQ(fused->ops, test.launches);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      double largest = 0;
      double error = 0;
      for (std::size_t k = 0; k < reference->outputs[i].size(); ++k) {
        const auto expected = static_cast<double>(reference->outputs[i][k]);
        largest = std::max(largest, std::abs(expected));
        error = std::max(error, std::abs(static_cast<double>(fused->outputs[i][k]) - expected));
      }
      EXPECT_GT(largest, 0.01);
      // The roundings of sums of so many terms, as a random walk; a factor of 8 for the worst of some
      // thousand elements.
      EXPECT_LE(error, 8 * std::sqrt(test.terms) * 0x1p-24 * largest) << isa_name(isa) << " step " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OtherGraph, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hone::test
