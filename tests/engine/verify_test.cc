// verify: right chains pass, planted faults are named, and the model of rounding is neither loose nor tight.
#include "graph/verify.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "engine/cut_graph.h"
#include "engine/rounding_model.h"
#include "engine/verify_ends.h"
#include "engine/verify_model.h"
#include "engine/verify_rewrites.h"
#include "file/open.h"
#include "graph/op_row.h"
#include "graph/text.h"

namespace hone::test {
namespace {

const std::vector<std::int32_t> kIds{1, 17, 58, 42, 7, 63, 56, 3};

std::string data_path(const std::string& name) {
  return std::string(HONE_TEST_DATA) + "/" + name;
}

VerifyReport verified(const std::string& model, const EngineOptions& options) {
  const Result<Checkpoint> checkpoint = open_checkpoint(data_path(model));
  if (!checkpoint.ok()) {
    ADD_FAILURE() << model << ": " << checkpoint.error().message;
    return {};
  }
  Result<VerifyReport> report = verify_model(*checkpoint, options, kIds);
  if (report.ok()) return std::move(report).value();
  ADD_FAILURE() << model << ": " << report.error().where << ": " << report.error().message;
  return {};
}

// The faulty passes named, at O2 unless told.
EngineOptions options_with(const std::vector<std::string>& names) {
  EngineOptions options;
  options.threads = 2;
  const auto plugins = load_plugin(HONE_FAULTY_PASSES);
  if (!plugins.ok()) {
    ADD_FAILURE() << plugins.error().message;
    return options;
  }
  for (const auto& plugin : *plugins) {
    if (std::find(names.begin(), names.end(), plugin->name) != names.end()) options.plugins.push_back(plugin);
  }
  EXPECT_EQ(options.plugins.size(), names.size());
  return options;
}

std::string plain(std::string name) {
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

class RightChains : public testing::TestWithParam<const char*> {};

TEST_P(RightChains, KeepTheirContracts) {
  const VerifyReport report = verified(GetParam(), {});
  EXPECT_TRUE(report.ok) << report.guilty;
  EXPECT_EQ(report.guilty, "");
  EXPECT_EQ(report.bisection_runs, 0);
  EXPECT_EQ(report.sequences, 5);
  int rewritten = 0;
  for (const PassCheck& check : report.passes) {
    EXPECT_TRUE(check.ok) << check.name;
    if (!check.changed) continue;
    rewritten += check.rewritten;
    EXPECT_LE(check.max_error, check.bound) << check.name;
    EXPECT_LE(check.end_to_end_error, check.end_to_end_bound) << check.name;
    if (check.contract.kind == ContractKind::SameBits) {
      EXPECT_EQ(check.max_error, 0) << check.name;
    }
  }
  EXPECT_GT(rewritten, 10);
  EXPECT_TRUE(report.notes.empty());
}

INSTANTIATE_TEST_SUITE_P(Models, RightChains,
                         testing::Values("gguf/llama-256-F32.gguf", "gguf/llama-256-Q8_0.gguf",
                                         "gguf/qwen3moe-Q8_0.gguf", "models/gemma2", "models/deepseek-v3",
                                         "models/phi3-longrope", "models/olmo2", "models/chatglm3"),
                         [](const testing::TestParamInfo<const char*>& model) { return plain(model.param); });

// Weights rounded as they are loaded: the pass is held to its own contract, and the others to theirs on
// rounded weights.
TEST(RoundedWeights, KeepTheirContract) {
  for (const char* model : {"gguf/llama-256-F32.gguf", "models/qwen2-untied-bf16"}) {
    EngineOptions options;
    options.weights = DType::Q8_0;
    const VerifyReport report = verified(model, options);
    EXPECT_TRUE(report.ok) << model << ": " << report.guilty;
    for (const PassCheck& check : report.passes) {
      EXPECT_TRUE(check.ok) << check.name;
      if (check.name != "quantise-weights") continue;
      EXPECT_GT(check.rewritten, 10) << model;
      EXPECT_GT(check.max_error, 1e-4) << model;
      EXPECT_LE(check.max_error, check.bound) << model;
      EXPECT_LE(check.end_to_end_error, check.end_to_end_bound) << model;
    }
  }
}

struct Planted {
  const char* pass;
  const char* op;          // in the piece that is shown
  std::size_t most_nodes;  // of its new form
};

class PlantedFault : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFault, IsNamedWithTheSmallestPiece) {
  const std::string name = std::string("plugin:") + GetParam().pass;
  for (const Level level : {Level::O2, Level::O3}) {
    EngineOptions options = options_with({name});
    options.level = level;
    const VerifyReport report = verified("gguf/llama-256-Q8_0.gguf", options);
    EXPECT_FALSE(report.ok);
    EXPECT_EQ(report.guilty, name);
    EXPECT_LE(report.bisection_runs, report.most_bisection_runs);
    EXPECT_GT(report.bisection_runs, 0);
    std::size_t changed = 0;
    for (const PassCheck& check : report.passes) {
      changed += check.changed ? 1 : 0;
      EXPECT_EQ(check.ok, check.name != name) << check.name;
    }
    EXPECT_EQ(report.most_bisection_runs, static_cast<int>(std::ceil(std::log2(changed))));
    const Result<Graph> before = parse_graph(report.before);
    const Result<Graph> after = parse_graph(report.after);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_TRUE(verify(*before, "the test").ok());
    EXPECT_TRUE(verify(*after, "the test").ok());
    EXPECT_NE(report.before, report.after);
    EXPECT_NE(report.before.find(GetParam().op), std::string::npos) << report.before;
    EXPECT_LE(after->nodes.size(), GetParam().most_nodes) << report.after;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plugins, PlantedFault,
    testing::Values(Planted{"forget-eps", "rsqrt", 1}, Planted{"swap-inputs", "swiglu_mlp", 1},
                    Planted{"drop-second-user", "matmul", 1}, Planted{"eightfold-error", "mul", 3},
                    Planted{"narrow-in-secret", "mul", 3}),
    [](const testing::TestParamInfo<Planted>& fault) { return plain(fault.param.pass); });

TEST(Verify, OfTwoFaultsTheEarlierOneIsFound) {
  const VerifyReport report =
      verified("gguf/llama-256-Q8_0.gguf", options_with({"plugin:swap-inputs", "plugin:drop-second-user"}));
  EXPECT_EQ(report.guilty, "plugin:drop-second-user");
  for (const PassCheck& check : report.passes) {
    if (check.name == "plugin:swap-inputs") {
      EXPECT_FALSE(check.ok);
    }
  }
}

// What a contract of another kind forbids: the type that the graph rounds to then counts, here and end to
// end.
TEST(Verify, APassThatSaysSoMayRoundToANarrowerType) {
  const VerifyReport report = verified("gguf/llama-256-F32.gguf", options_with({"plugin:narrow-openly"}));
  EXPECT_TRUE(report.ok) << report.guilty;
  for (const PassCheck& check : report.passes) {
    if (check.name == "plugin:narrow-openly") {
      EXPECT_GT(check.max_error, 0x1p-10);
    }
  }
}

TEST(Verify, AFaultThatIsSwitchedOffIsNone) {
  EngineOptions options = options_with({"plugin:swap-inputs"});
  options.disabled_passes = {"plugin:swap-inputs"};
  EXPECT_TRUE(verified("gguf/llama-256-Q8_0.gguf", options).ok);
}

TEST(Verify, AnotherOrderOfPassesKeepsTheContractsToo) {
  EngineOptions options;
  options.moved_passes = {{"fuse-rope", false, "fuse-attention"}, {"fuse-norm", true, "fuse-mlp"}};
  EXPECT_TRUE(verified("gguf/llama-256-Q8_0.gguf", options).ok);
}

TEST(Verify, IdsOutsideTheVocabularyAreRefused) {
  const Result<Checkpoint> checkpoint = open_checkpoint(data_path("gguf/llama-256-F32.gguf"));
  ASSERT_TRUE(checkpoint.ok());
  const std::vector<std::int32_t> ids{1, 512};
  const Result<VerifyReport> report = verify_model(*checkpoint, {}, ids);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().fault, Fault::User);
  EXPECT_EQ(report.error().expected, "0 to 511");
}

// --- the model of rounding
// -----------------------------------------------------------------------------------

// Sixteen tokens of 64 logits, each off by a rounding of its own, all of them by `factor` besides.
ScaleOfLogits scale_of(double factor, std::size_t tokens) {
  std::mt19937 random(5);
  std::normal_distribution<double> draw;
  ScaleOfLogits scale;
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<double> was(64);
    std::vector<double> is(64);
    for (std::size_t i = 0; i < was.size(); ++i) {
      was[i] = draw(random);
      is[i] = was[i] * (1 + factor) + 8 * 0x1p-24 * draw(random);
    }
    scale.add(is, was);
  }
  return scale;
}

TEST(ScaleOfLogits, TellsWhatHasASideFromWhatHasNone) {
  const ScaleOfLogits right = scale_of(0, 16);
  EXPECT_LE(std::abs(right.mean()), right.bound());
  // Less than what each logit is off by.
  for (const double factor : {6 * 0x1p-24, -6 * 0x1p-24}) {
    const ScaleOfLogits wrong = scale_of(factor, 16);
    EXPECT_GT(std::abs(wrong.mean()), wrong.bound()) << factor;
    EXPECT_NEAR(wrong.mean(), factor, 2 * 0x1p-24);
  }
  EXPECT_FALSE(scale_of(0, ScaleOfLogits::kFewest - 1).is_known());
  EXPECT_EQ(ScaleOfLogits().mean(), 0);
}

TEST(Rounding, EveryOpWithoutABodyHasARule) {
  for (const OpRow* row : all_ops()) {
    const bool fused = row->op_class == OpClass::Fused && row->name != "quantize_q8a";
    if (fused) continue;
    EXPECT_NE(find_rounding_rule(row->name), nullptr) << row->name;
  }
}

Graph parse(const char* text) {
  Result<Graph> graph = parse_graph(text);
  if (graph.ok()) return std::move(graph).value();
  ADD_FAILURE() << graph.error().where << " " << graph.error().expected;
  return {};
}

// Products of random rows, exact in f64, against sums in f32 as the model describes them: the measured
// deviation is the predicted one within the factor that kTypical leaves.
TEST(Rounding, TheDeviationOfAMatmulIsThatOfAChainOfRoundings) {
  constexpr std::int64_t kRows = 256;
  constexpr std::int64_t kLength = 200;
  const Graph graph = parse(R"(graph "g" symbols() {
    input %a "a": f32[256,200]
    input %b "b": f32[1,200]
    %y: f32[256,1] = matmul(%a, %b) {transpose_b = 1}
    output "y" %y
  })");
  TensorData a{DType::F32, {kRows, kLength}, std::vector<std::byte>(kRows * kLength * 4)};
  TensorData b{DType::F32, {1, kLength}, std::vector<std::byte>(kLength * 4)};
  auto* x = reinterpret_cast<float*>(a.bytes.data());
  auto* w = reinterpret_cast<float*>(b.bytes.data());
  std::uint32_t state = 1;
  const auto draw = [&] {
    state = state * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  };
  for (std::int64_t i = 0; i < kRows * kLength; ++i) x[i] = draw();
  for (std::int64_t i = 0; i < kLength; ++i) w[i] = draw();
  TensorData y{DType::F32, {kRows, 1}, std::vector<std::byte>(kRows * 4)};
  auto* sums = reinterpret_cast<float*>(y.bytes.data());
  double measured = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    float sum = 0;
    double exact = 0;
    for (std::int64_t i = 0; i < kLength; ++i) {
      sum = std::fma(x[r * kLength + i], w[i], sum);
      exact += static_cast<double>(x[r * kLength + i]) * static_cast<double>(w[i]);
    }
    sums[r] = sum;
    measured += (static_cast<double>(sum) - exact) * (static_cast<double>(sum) - exact);
  }
  const auto spreads = rounding_spreads(graph, {{"a", a}, {"b", b}}, {{"%y", y}}, {}, {}, {});
  ASSERT_TRUE(spreads.ok()) << spreads.error().where << spreads.error().message;
  double expected = 0;
  for (const double deviation : spreads->find("%y")->second.deviation) expected += deviation * deviation;
  const double ratio = std::sqrt(measured / expected);
  EXPECT_LT(ratio, 1.2);
  EXPECT_GT(ratio, 1 / kTypical);
}

TEST(Rounding, ACastToHalfAndAnInt8BlockRoundAsTheirTypesSay) {
  const Graph graph = parse(R"(graph "g" symbols() {
    input %x "x": f32[32]
    %h: f16[32] = cast(%x) {to = "f16"}
    %q: q8a[32] = quantize_q8a(%x)
    output "h" %h
    output "q" %q
  })");
  TensorData x{DType::F32, {32}, std::vector<std::byte>(32 * 4)};
  auto* values = reinterpret_cast<float*>(x.bytes.data());
  for (int i = 0; i < 32; ++i) values[i] = static_cast<float>(i - 15) / 7.0F;
  const Result<TensorData> half = converted(x, DType::F16);
  const Result<TensorData> block = converted(x, DType::Q8A);
  ASSERT_TRUE(half.ok() && block.ok());
  const auto spreads = rounding_spreads(graph, {{"x", x}}, {{"%h", *half}, {"%q", *block}}, {}, {}, {});
  ASSERT_TRUE(spreads.ok()) << spreads.error().message;
  const std::vector<double>& of_half = spreads->find("%h")->second.deviation;
  const std::vector<double>& of_block = spreads->find("%q")->second.deviation;
  const double largest = 16.0 / 7;
  EXPECT_NEAR(of_half[31], 0x1p-11 * largest / std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(of_block[0], largest / 127 / std::sqrt(12.0), 1e-6);
  EXPECT_EQ(of_block[0], of_block[31]);
}

// --- pieces of graphs
// ----------------------------------------------------------------------------------------

TEST(CutGraph, StopsAtGivenValuesAndTakesConstantsAlong) {
  const Graph graph = parse(R"(graph "g" symbols(T) {
    input %x "x": f32[T,4]
    %c: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
    %a: f32[T,4] = exp(%x)
    %b: f32[T,4] = mul(%a, %c)
    %d: f32[T,4] = add(%b, %a)
    output "d" %d
  })");
  std::map<std::string, ValueId> names;
  for (const Node& node : graph.nodes) names[graph.value_name(node.outputs[0])] = node.outputs[0];
  const ValueId targets[] = {names["%b"], names["%d"]};
  // %b is computed, and what reads it reads the given one.
  const Cut cut =
      cut_graph(graph, targets, [&](ValueId value) { return value == names["%a"] || value == names["%b"]; });
  EXPECT_EQ(cut.nodes, 3U);
  ASSERT_EQ(cut.graph.inputs.size(), 2U);
  EXPECT_EQ(cut.graph.inputs[0].name, "%a");
  EXPECT_EQ(cut.graph.inputs[1].name, "%b");
  EXPECT_TRUE(verify(cut.graph, "the cut").ok());
}

}  // namespace
}  // namespace hone::test
