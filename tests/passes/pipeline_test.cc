#include "passes/pipeline.h"

#include <gtest/gtest.h>
#include <map>

#include "decoder_graph.h"
#include "pass_test.h"

namespace hone::test {
namespace {

// Runs the pipeline, verified after every pass, and returns its reports by name.
std::map<std::string, PassReport> run(Graph& graph, Level level, const PassContext& context = {},
                                      std::string_view stop_after = {}) {
  std::map<std::string, PassReport> reports;
  PipelineOptions options;
  options.level = level;
  options.stop_after = stop_after;
  options.verify = true;
  options.observe = [&](const PassReport& report, const Graph&) -> Status {
    reports[report.name] = report;
    return {};
  };
  const Status status = run_pipeline(graph, options, context);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().where + ": " + status.error().message);
  return reports;
}

// Of the made-up decoder, whatever its spelling of rope. Each of the 2 layers: norm; q, k and v with ropes
// and appends; attention; output projection with its addition; both halves of the mlp, with the norm folded
// into them; down projection with its addition = 6. Around them: embedding, 4 for the rotary tables (cast,
// product, cos and sin), gather, norm, logits = 8. Norms of the heads of q and k add none.
constexpr std::int64_t kLaunchesAtO2 = 2 * 6 + 8;

void expect_all_fused(const DecoderOptions& options) {
  Graph graph = decoder_graph(options);
  const std::int64_t before = count_graph(graph).launches;
  const std::map<std::string, PassReport> reports = run(graph, Level::O2);
  EXPECT_EQ(count_op(graph, "attention"), 2);
  EXPECT_EQ(count_op(graph, "projection"), 2 * 4);
  EXPECT_EQ(count_op(graph, "rope") + count_op(graph, "state_append") + count_op(graph, "swiglu_mlp"), 0)
      << print_graph(graph);
  EXPECT_EQ(count_op(graph, "rms_norm"), 2 + 1);  // the others are folded into projections
  EXPECT_EQ(count_op(graph, "softmax"), 0);       // inside attention
  EXPECT_EQ(count_graph(graph).launches, kLaunchesAtO2) << print_graph(graph);
  EXPECT_GT(before, 3 * kLaunchesAtO2);
  for (const std::string_view name : {"fuse-softmax", "fuse-attention", "fuse-norm", "fuse-rope", "fuse-mlp",
                                      "fuse-epilogue", "merge-projections", "fold-norm"}) {
    const PassReport& report = reports.at(std::string(name));
    EXPECT_TRUE(report.changed) << name;
    EXPECT_LT(report.after.launches, report.before.launches) << name;
  }
}

TEST(Pipeline, FusesTheDecoderInEverySpelling) {
  DecoderOptions options;
  expect_all_fused(options);
  options.interleaved = true;
  expect_all_fused(options);
  options.rotary_dim = 16;
  expect_all_fused(options);
  options.interleaved = false;
  expect_all_fused(options);
  options.biases = true;
  options.head_norms = true;
  expect_all_fused(options);
}

TEST(Pipeline, LevelsHoldWhatTheyPromise) {
  const Graph made = decoder_graph({});
  Graph graph = made;
  run(graph, Level::O0);
  EXPECT_EQ(print_graph(graph), print_graph(made));
  run(graph, Level::O1);
  EXPECT_LT(count_graph(graph).nodes, count_graph(made).nodes);  // the masks of two layers are one
  for (const Node& node : graph.nodes) EXPECT_EQ(node.body, nullptr) << node.op;
}

TEST(Pipeline, PrecisionPolicyOfAQuantisedModel) {
  DecoderOptions options;
  options.weights = DType::Q4_1;
  Graph graph = decoder_graph(options);
  PassContext context;
  context.precision = {.int8_activations = true, .kv = DType::F16};
  run(graph, Level::O3, context, "assign-precision");
  EXPECT_EQ(count_op(graph, "quantize_q8a"), 2 * 4 + 1);  // q k v, output, mlp, down; logits
  for (const Node& node : graph.nodes) {
    if (node.op != "matmul" && node.op != "swiglu_mlp" && node.op != "projection") continue;
    EXPECT_EQ(graph.type(node.inputs[0]).dtype, DType::Q8A) << node.module;
  }
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::State) {
      EXPECT_EQ(graph.type(input.value).dtype, DType::F16) << input.name;
    }
  }
  // Later each value is rounded in the launch that makes it.
  run(graph, Level::O3, context);
  EXPECT_EQ(count_op(graph, "quantize_q8a"), 0);
  EXPECT_EQ(count_op(graph, "cast"), 1);
}

TEST(Pipeline, ACacheTypeHoldsAtEveryLevel) {
  for (const Level level : {Level::O0, Level::O1, Level::O2}) {
    Graph graph = decoder_graph({});
    PassContext context;
    context.precision.kv = DType::F16;
    run(graph, level, context);
    for (const GraphInput& input : graph.inputs) {
      if (input.kind == InputKind::State) {
        EXPECT_EQ(graph.type(input.value).dtype, DType::F16) << input.name;
      }
    }
  }
}

TEST(Pipeline, DisabledPassesDoNotRun) {
  Graph graph = decoder_graph({});
  PipelineOptions options;
  options.disabled = {"fuse-attention", "fuse-softmax", "fuse-epilogue"};
  ASSERT_TRUE(run_pipeline(graph, options, {}).ok());
  EXPECT_EQ(count_op(graph, "attention"), 0);
  EXPECT_EQ(count_op(graph, "softmax"), 0);
  EXPECT_EQ(count_op(graph, "rope"), 4);
}

TEST(Pipeline, AttentionNeedsNoFuseSoftmax) {
  Graph graph = decoder_graph({});
  PipelineOptions options;
  options.disabled = {"fuse-softmax"};
  ASSERT_TRUE(run_pipeline(graph, options, {}).ok());
  EXPECT_EQ(count_op(graph, "attention"), 2);
}

TEST(Pipeline, StopsAfterTheNamedPass) {
  Graph graph = decoder_graph({});
  std::vector<std::string> names;
  PipelineOptions options;
  options.stop_after = "fuse-norm";
  options.observe = [&](const PassReport& report, const Graph&) -> Status {
    names.push_back(report.name);
    return {};
  };
  ASSERT_TRUE(run_pipeline(graph, options, {}).ok());
  const std::vector<std::string> expected{"widen-weights", "quantise-weights", "fold-constants", "simplify",
                                          "cse",           "fuse-softmax",     "fuse-attention", "fuse-norm"};
  EXPECT_EQ(names, expected);
}

TEST(Pipeline, UnknownNamesAreListedTogether) {
  Graph graph = decoder_graph({});
  const std::string before = print_graph(graph);
  PipelineOptions options;
  options.disabled = {"fuse-nrom", "dce"};
  options.stop_after = "simplfy";
  const Status status = run_pipeline(graph, options, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::Usage);
  EXPECT_EQ(status.error().fault, Fault::User);
  EXPECT_EQ(status.error().where, "--passes, --stop-after");
  EXPECT_EQ(status.error().actual, "'fuse-nrom', 'simplfy'");
  EXPECT_EQ(status.error().next_step, "did you mean 'fuse-norm'? did you mean 'simplify'?");
  EXPECT_EQ(print_graph(graph), before);
}

TEST(Pipeline, AnObserverEndsTheRun) {
  Graph graph = decoder_graph({});
  PipelineOptions options;
  options.observe = [](const PassReport&, const Graph&) -> Status {
    return internal_error("here", "enough");
  };
  EXPECT_EQ(run_pipeline(graph, options, {}).error().message, "enough");
}

Status break_graph(Graph& graph, const PassContext&) {
  graph.values[static_cast<std::size_t>(graph.nodes.back().outputs[0])].type.dtype = DType::F64;
  return {};
}

TEST(Pipeline, APassThatBreaksTheGraphIsNamed) {
  Graph graph = decoder_graph({});
  const PassRow row{"break-graph", break_graph, {}, Level::O0, "a test"};
  PipelineOptions options;
  options.verify = true;
  const Status status = run_pass(graph, row, options, {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().where.find("after break-graph"), std::string::npos) << status.error().where;
}

TEST(Pipeline, EveryRowSaysWhyItStandsThere) {
  for (const PassRow& row : pipeline()) {
    EXPECT_FALSE(row.why.empty()) << row.name;
    EXPECT_EQ(row.contract.kind == ContractKind::SameBits, row.contract.bound.empty()) << row.name;
  }
  EXPECT_EQ(contract_to_string({ContractKind::SameBits, ""}), "same bits");
  EXPECT_EQ(contract_to_string({ContractKind::Reorders, "K * 2^-24"}), "reorders, bound K * 2^-24");
}

}  // namespace
}  // namespace hone::test
