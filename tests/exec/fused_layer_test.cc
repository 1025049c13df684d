// A decoder layer and its logits through all passes, the planner and the executor: projections that take what
// follows them, share launches, and fold norms between them.
#include <gtest/gtest.h>

#include "run_graph.h"

namespace hone::test {
namespace {

// H = 4 heads on K = 2 key-value heads of E = 32, of which R = 16 turn; F = 96, 40 logits. @W: the type of
// the matrices.
constexpr std::string_view kLayer = R"(graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %cos "cos": f32[B,T,8]
  input %sin "sin": f32[B,T,8]
  input %pos "positions": i32[B,T]
  weight %wn "attn_norm": f32[64]
  weight %wq "q": @W[128,64]
  weight %wk "k": @W[64,64]
  weight %bk "k_bias": f32[64]
  weight %wv "v": @W[64,64]
  weight %wo "o": @W[64,128]
  weight %wm "ffn_norm": f32[64]
  weight %wg "gate": @W[96,64]
  weight %wu "up": @W[96,64]
  weight %wd "down": @W[64,96]
  weight %wl "norm": f32[64]
  weight %wh "head": @W[40,64]
  state %ks "keys": f32[B,C,2,32]
  state %vs "values": f32[B,C,2,32]
  %one: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %scale: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.1]}
  %inf: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-inf]}
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %s1: f32[B,T,64] = mul(%x, %x)
  %m1: f32[B,T,1] = reduce_mean(%s1) {axis = -1, keep_dims = 1}
  %a1: f32[B,T,1] = add(%m1, %eps)
  %r1: f32[B,T,1] = rsqrt(%a1)
  %x1: f32[B,T,64] = mul(%x, %r1)
  %n1: f32[B,T,64] = mul(%x1, %wn)
  %cr: f32[B,T,1,8] = reshape(%cos) {shape = dims[B, T, 1, 8]}
  %sr: f32[B,T,1,8] = reshape(%sin) {shape = dims[B, T, 1, 8]}
  %qp: f32[B,T,128] = matmul(%n1, %wq) {transpose_b = 1}
  %qh: f32[B,T,4,32] = reshape(%qp) {shape = dims[B, T, 4, 32]}
  %q1: f32[B,T,4,8] = slice(%qh) {axis = 3, range = dims[0, 8]}
  %q2: f32[B,T,4,8] = slice(%qh) {axis = 3, range = dims[8, 16]}
  %q3: f32[B,T,4,16] = slice(%qh) {axis = 3, range = dims[16, 32]}
  %q1c: f32[B,T,4,8] = mul(%q1, %cr)
  %q2s: f32[B,T,4,8] = mul(%q2, %sr)
  %qa: f32[B,T,4,8] = sub(%q1c, %q2s)
  %q2c: f32[B,T,4,8] = mul(%q2, %cr)
  %q1s: f32[B,T,4,8] = mul(%q1, %sr)
  %qb: f32[B,T,4,8] = add(%q2c, %q1s)
  %qr: f32[B,T,4,32] = concat(%qa, %qb, %q3) {axis = 3}
  %q5: f32[B,T,2,2,32] = reshape(%qr) {shape = dims[B, T, 2, 2, 32]}
  %q: f32[B,2,2,T,32] = permute(%q5) {axes = ints[0, 2, 3, 1, 4]}
  %kp: f32[B,T,64] = matmul(%n1, %wk) {transpose_b = 1}
  %kb: f32[B,T,64] = add(%kp, %bk)
  %kh: f32[B,T,2,32] = reshape(%kb) {shape = dims[B, T, 2, 32]}
  %k1: f32[B,T,2,8] = slice(%kh) {axis = 3, range = dims[0, 8]}
  %k2: f32[B,T,2,8] = slice(%kh) {axis = 3, range = dims[8, 16]}
  %k3: f32[B,T,2,16] = slice(%kh) {axis = 3, range = dims[16, 32]}
  %k1c: f32[B,T,2,8] = mul(%k1, %cr)
  %k2s: f32[B,T,2,8] = mul(%k2, %sr)
  %ka: f32[B,T,2,8] = sub(%k1c, %k2s)
  %k2c: f32[B,T,2,8] = mul(%k2, %cr)
  %k1s: f32[B,T,2,8] = mul(%k1, %sr)
  %kc: f32[B,T,2,8] = add(%k2c, %k1s)
  %kr: f32[B,T,2,32] = concat(%ka, %kc, %k3) {axis = 3}
  %vp: f32[B,T,64] = matmul(%n1, %wv) {transpose_b = 1}
  %vh: f32[B,T,2,32] = reshape(%vp) {shape = dims[B, T, 2, 32]}
  %k: f32[B,C,2,32] = state_append(%ks, %kr, %pos)
  %v: f32[B,C,2,32] = state_append(%vs, %vh, %pos)
  %kt: f32[B,2,C,32] = permute(%k) {axes = ints[0, 2, 1, 3]}
  %k5: f32[B,2,1,C,32] = reshape(%kt) {shape = dims[B, 2, 1, C, 32]}
  %vt: f32[B,2,C,32] = permute(%v) {axes = ints[0, 2, 1, 3]}
  %v5: f32[B,2,1,C,32] = reshape(%vt) {shape = dims[B, 2, 1, C, 32]}
  %i: i32[C] = iota() {axis = 0, shape = dims[C]}
  %p5: i32[B,1,1,T,1] = reshape(%pos) {shape = dims[B, 1, 1, T, 1]}
  %sc: f32[B,2,2,T,C] = matmul(%q, %k5) {transpose_b = 1}
  %st: f32[B,2,2,T,C] = mul(%sc, %scale)
  %mask: bool[B,1,1,T,C] = less_equal(%i, %p5)
  %su: f32[B,2,2,T,C] = select(%mask, %st, %inf)
  %sm: f32[B,2,2,T,1] = reduce_max(%su) {axis = -1, keep_dims = 1}
  %sd: f32[B,2,2,T,C] = sub(%su, %sm)
  %se: f32[B,2,2,T,C] = exp(%sd)
  %sz: f32[B,2,2,T,1] = reduce_sum(%se) {axis = -1, keep_dims = 1}
  %sp: f32[B,2,2,T,C] = div(%se, %sz)
  %so: f32[B,2,2,T,32] = matmul(%sp, %v5)
  %at: f32[B,T,2,2,32] = permute(%so) {axes = ints[0, 3, 1, 2, 4]}
  %ar: f32[B,T,128] = reshape(%at) {shape = dims[B, T, 128]}
  %op: f32[B,T,64] = matmul(%ar, %wo) {transpose_b = 1}
  %y1: f32[B,T,64] = add(%x, %op)
  %s2: f32[B,T,64] = mul(%y1, %y1)
  %m2: f32[B,T,1] = reduce_mean(%s2) {axis = -1, keep_dims = 1}
  %a2: f32[B,T,1] = add(%m2, %eps)
  %r2: f32[B,T,1] = rsqrt(%a2)
  %x2: f32[B,T,64] = mul(%y1, %r2)
  %n2: f32[B,T,64] = mul(%x2, @N)
  %g: f32[B,T,96] = matmul(%n2, %wg) {transpose_b = 1}
  %u: f32[B,T,96] = matmul(%n2, %wu) {transpose_b = 1}
  %gn: f32[B,T,96] = neg(%g)
  %ge: f32[B,T,96] = exp(%gn)
  %gd: f32[B,T,96] = add(%ge, %one)
  %gs: f32[B,T,96] = div(%g, %gd)
  %gu: f32[B,T,96] = mul(%gs, %u)
  %dp: f32[B,T,64] = matmul(%gu, %wd) {transpose_b = 1}
  %y2: f32[B,T,64] = add(%y1, %dp)
  %s3: f32[B,T,64] = mul(%y2, %y2)
  %m3: f32[B,T,1] = reduce_mean(%s3) {axis = -1, keep_dims = 1}
  %a3: f32[B,T,1] = add(%m3, %eps)
  %r3: f32[B,T,1] = rsqrt(%a3)
  %x3: f32[B,T,64] = mul(%y2, %r3)
  %n3: f32[B,T,64] = mul(%x3, %wl)
  %y: f32[B,T,40] = matmul(%n3, %wh) {transpose_b = 1}
  output "y" %y
  update "keys" %k
  update "values" %v
})";

struct Layer {
  const char* name;
  std::string_view matrices;
  bool offset;  // 1 + w in the norm that is folded
  PrecisionPolicy precision;
  double additions;  // behind a logit, of f32; 0: int8 decides
};

// Norms 3 * 64, products 64, 128, 64, 96 and 64, scores 32 and twice the 42 keys.
constexpr double kAdditions = 3 * 64 + 64 + 128 + 64 + 96 + 64 + 32 + 2 * 42;

const Layer kLayers[] = {
    {"F32", "f32", false, {}, kAdditions},
    {"F32WithOffset", "f32", true, {}, kAdditions},
    {"F32CacheF16", "f32", false, {.kv = DType::F16}, kAdditions},
    {"Q8", "q8_0", false, {}, kAdditions},
    {"Q8Int8", "q8_0", false, {.int8_activations = true}, 0},
    {"Q8Int8CacheBf16", "q8_0", true, {.int8_activations = true, .kv = DType::BF16}, 0},
};
void PrintTo(const Layer& layer, std::ostream* out) {
  *out << layer.name;
}

const Bindings kBound{{'B', 3}, {'T', 64}, {'C', 64}};
// A prompt, one more token, a chunk; the same of one and of three sequences.
const std::vector<std::vector<StepSizes>> kRuns{
    {{{{'B', 2}, {'T', 37}, {'C', 37}}, 0},
     {{{'B', 2}, {'T', 1}, {'C', 38}}, 37},
     {{{'B', 2}, {'T', 4}, {'C', 42}}, 38}},
    {{{{'B', 1}, {'T', 1}, {'C', 1}}, 0}, {{{'B', 1}, {'T', 9}, {'C', 10}}, 1}},
    {{{{'B', 3}, {'T', 7}, {'C', 7}}, 0}, {{{'B', 3}, {'T', 1}, {'C', 8}}, 7}},
};

const std::vector<std::string> kPasses{"fuse-quantise", "fuse-epilogue", "merge-projections", "fold-norm"};

std::string text_of(const Layer& layer) {
  std::string text(kLayer);
  for (std::size_t at = 0; (at = text.find("@W", at)) != std::string::npos;)
    text.replace(at, 2, layer.matrices);
  text.replace(text.find("@N"), 2, layer.offset ? "%wm1" : "%wm");
  if (layer.offset) text.insert(text.find("  %n2:"), "  %wm1: f32[64] = add(%wm, %one)\n");
  return text;
}

class FusedLayer : public ::testing::TestWithParam<Layer> {
 protected:
  static GraphRun run(std::size_t steps, Level level, Isa isa, int threads = 2,
                      const std::vector<std::string>& disabled = {}) {
    PassChoice choice{GetParam().precision, disabled};
    if (level == Level::O0) choice.precision.int8_activations = false;
    const Result<GraphRun> done =
        run_graph(text_of(GetParam()), level, isa, kBound, kRuns[steps], threads, choice);
    if (!done.ok()) {
      ADD_FAILURE() << describe(done.error());
      return {};
    }
    return *done;
  }
};

std::int64_t count(const GraphRun& run, std::string_view op) {
  return std::count(run.ops.begin(), run.ops.end(), op);
}

// The largest difference, in parts of the largest of `expected`.
double distance(const std::vector<std::vector<float>>& actual,
                const std::vector<std::vector<float>>& expected) {
  double magnitude = 0;
  double error = 0;
  EXPECT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    EXPECT_EQ(actual[i].size(), expected[i].size());
    for (std::size_t k = 0; k < std::min(actual[i].size(), expected[i].size()); ++k) {
      EXPECT_TRUE(std::isfinite(actual[i][k]));
      const auto wanted = static_cast<double>(expected[i][k]);
      magnitude = std::max(magnitude, std::abs(wanted));
      error = std::max(error, std::abs(static_cast<double>(actual[i][k]) - wanted));
    }
  }
  EXPECT_GT(magnitude, 0.1);
  return error / magnitude;
}

// norm, qkv, attention, o, both halves of the MLP, down, logits.
TEST_P(FusedLayer, HasALaunchForEachProjection) {
  const GraphRun fused = run(0, Level::O3, Isa::Portable);
  EXPECT_EQ(fused.ops.size(), 7U) << ::testing::PrintToString(fused.ops);
  EXPECT_EQ(count(fused, "projection"), 5);
  EXPECT_EQ(count(fused, "rms_norm"), 1);
  EXPECT_EQ(count(fused, "quantize_q8a"), 0);
  EXPECT_EQ(count(fused, "rope") + count(fused, "state_append") + count(fused, "swiglu_mlp"), 0);
}

// In f32 within the roundings of a random walk, as in fused_ops_test.cc. In int8 each of four roundings to
// blocks errs by at most 1/254 of the block's largest value, 0.6 % of its root mean square on average; four
// of them one behind the other 1.2 %, and the worst of some thousand logits by four times that.
TEST_P(FusedLayer, ComputesWhatItsPrimitivesDo) {
  const double bound = GetParam().additions == 0 ? 0.05 : 8 * 0x1p-24 * std::sqrt(GetParam().additions);
  // A score that is rounded to the cache's type on the other side moves by a unit of that type.
  const double cache = GetParam().precision.kv == DType::F16 ? 0x1p-10 : 0;
  for (std::size_t steps = 0; steps < kRuns.size(); ++steps) {
    const GraphRun reference = run(steps, Level::O0, Isa::Portable);
    EXPECT_EQ(count(reference, "projection"), 0);
    for (const Isa isa : kIsaLevels) {
      if (isa > detect_isa()) continue;
      for (const Level level : {Level::O2, Level::O3}) {
        const GraphRun fused = run(steps, level, isa);
        EXPECT_GE(count(fused, "projection"), 4);
        EXPECT_LE(distance(fused.outputs, reference.outputs), bound + cache)
            << isa_name(isa) << ", run " << steps;
      }
    }
  }
}

TEST_P(FusedLayer, HasTheSameBitsOnEveryInstructionSetAndThreadCount) {
  for (std::size_t steps = 0; steps < kRuns.size(); ++steps) {
    const GraphRun portable = run(steps, Level::O3, Isa::Portable, 1);
    for (const Isa isa : kIsaLevels) {
      if (isa > detect_isa()) continue;
      for (const int threads : {1, 2, 3})
        EXPECT_EQ(run(steps, Level::O3, isa, threads).outputs, portable.outputs)
            << isa_name(isa) << ", " << threads << " threads, run " << steps;
    }
  }
  if (detect_isa() < Isa::Avx512) GTEST_SKIP() << "this machine has no " << isa_name(Isa::Avx512);
}

// The contract of all of them but fold-norm: each alone, and all together, leave the bits as they are.
TEST_P(FusedLayer, ThePassesKeepTheBits) {
  for (std::size_t steps = 0; steps < kRuns.size(); ++steps) {
    const GraphRun apart = run(steps, Level::O3, detect_isa(), 2, kPasses);
    EXPECT_EQ(count(apart, "projection"), GetParam().precision.int8_activations ? 1 : 0);
    EXPECT_EQ(run(steps, Level::O3, detect_isa(), 2, {"fold-norm"}).outputs, apart.outputs);
    for (std::size_t pass = 0; pass < 3; ++pass) {
      std::vector<std::string> others = kPasses;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(pass));
      EXPECT_EQ(run(steps, Level::O3, detect_isa(), 2, others).outputs, apart.outputs) << kPasses[pass];
    }
  }
}

// The norm in front of the MLP is folded: other bits, within the bound of its contract, (K/512 + 14) * 2^-24
// of each product, and in int8 within one more rounding of its blocks.
TEST_P(FusedLayer, AFoldedNormIsNearTheNorm) {
  const double bound = GetParam().additions == 0 ? 0.03 : 8 * 15 * 0x1p-24;
  for (std::size_t steps = 0; steps < kRuns.size(); ++steps) {
    const GraphRun folded = run(steps, Level::O3, detect_isa());
    const GraphRun apart = run(steps, Level::O3, detect_isa(), 2, {"fold-norm"});
    EXPECT_EQ(count(apart, "rms_norm"), 3);
    EXPECT_NE(folded.outputs, apart.outputs);
    EXPECT_LE(distance(folded.outputs, apart.outputs), bound);
  }
}

std::string name_of(const ::testing::TestParamInfo<Layer>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Types, FusedLayer, ::testing::ValuesIn(kLayers), name_of);

}  // namespace
}  // namespace hone::test
