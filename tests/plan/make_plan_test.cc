// Graphs in, plans out: launches, layouts, views, fallbacks and what is missing.
#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/verify.h"
#include "passes/pipeline.h"
#include "plan/plan.h"
#include "plan/print.h"

namespace hone {
namespace {

Graph parse(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().where + ": " + graph.error().expected);
  if (!graph.ok()) return {};
  const Status valid = verify(*graph, "parsing");
  EXPECT_TRUE(valid.ok()) << (valid.ok() ? "" : valid.error().message);
  return std::move(graph).value();
}

PlanOptions options(Level level) {
  PlanOptions out;
  out.target.isa = Isa::Portable;
  out.level = level;
  out.bound = {{'B', 1}, {'T', 8}, {'C', 32}, {'R', 1}};
  return out;
}

constexpr std::string_view kMlp = R"(graph "mlp" symbols(B, T, C, R) {
  input %x "x": f32[B,T,64]
  weight %w "w": q4_0[32,64]
  %1: f32[B,T,32] = matmul(%x, %w) {transpose_b = 1} @"up"
  %2: f32[B,T,32] = neg(%1) @"up"
  %3: f32[B,T,32] = exp(%2) @"up"
  output "y" %3
})";

TEST(MakePlan, LevelZeroRunsEachNodeOnItsReferenceKernel) {
  const Graph graph = parse(kMlp);
  const Result<Plan> plan = make_plan(graph, options(Level::O0));
  ASSERT_TRUE(plan.ok()) << plan.error().actual;
  ASSERT_EQ(plan->launches(), 3);
  for (const Step& step : plan->steps) EXPECT_TRUE(step.kernel->reference) << step.kernel->name;
  EXPECT_EQ(plan->statics[0].layout, Layout::Strided);
  EXPECT_EQ(plan->fallbacks(), 0);
}

TEST(MakePlan, FastLevelsPackTheWeight) {
  const Graph graph = parse(kMlp);
  const Result<Plan> plan = make_plan(graph, options(Level::O1));
  ASSERT_TRUE(plan.ok()) << plan.error().actual;
  EXPECT_EQ(plan->statics[0].layout, Layout::Panel16);
  EXPECT_EQ(plan->fallbacks(), 0);
  for (const Step& step : plan->steps) EXPECT_FALSE(step.kernel->reference) << step.kernel->name;
}

// The step of the one projection that `text` becomes.
Step projection_step(std::string_view text) {
  Graph graph = parse(text);
  for (const std::string_view name : {"fuse-epilogue", "merge-projections"}) {
    const Result<const PassRow*> pass = find_pass(name);
    EXPECT_TRUE(pass.ok() && run_pass(graph, **pass, {}, {}).ok());
  }
  const Result<Plan> plan = make_plan(graph, options(Level::O2));
  EXPECT_TRUE(plan.ok());
  if (!plan.ok()) return {};
  for (const Step& step : plan->steps) {
    if (step.op == "projection") return step;
  }
  ADD_FAILURE() << "no projection";
  return {};
}

bool overwrites_residual(std::string_view text) {
  const Step step = projection_step(text);
  // Where the residual is x, it is no input of its own.
  if (step.outputs.empty() || step.inputs.size() < 3) return false;
  return step.outputs[0].place.offset == step.inputs[2].place.offset &&
         step.outputs[0].place.region == step.inputs[2].place.region;
}

constexpr std::string_view kResidual = R"(graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %w "w": q4_0[64,64]
  %r: f32[B,T,64] = neg(%x)
  %h: f32[B,T,64] = exp(%x)
  %1: f32[B,T,64] = matmul(%h, %w) {transpose_b = 1}
  %2: f32[B,T,64] = add(%r, %1)
  %3: f32[B,T,64] = tanh(%2)
  output "y" %3
})";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  return out.replace(out.find(from), from.size(), to);
}

TEST(MakePlan, ASumTakesThePlaceOfAResidualThatNobodyReadsAfterwards) {
  EXPECT_TRUE(overwrites_residual(kResidual));
  EXPECT_FALSE(overwrites_residual(replaced(kResidual, "= tanh(%2)", "= mul(%2, %r)"))) << "read later";
  EXPECT_FALSE(overwrites_residual(replaced(kResidual, "%3: f32[B,T,64] = tanh(%2)",
                                            "%v: f32[B,T,64] = reshape(%r) {shape = dims[B, T, 64]}\n"
                                            "  %3: f32[B,T,64] = mul(%2, %v)")))
      << "read later through a view";
  EXPECT_FALSE(
      overwrites_residual(replaced(kResidual, "output \"y\" %3", "output \"y\" %3\n  output \"r\" %r")))
      << "an output";
  EXPECT_FALSE(overwrites_residual(replaced(kResidual, "add(%r, %1)", "add(%x, %1)")))
      << "an input of the step";
  EXPECT_FALSE(overwrites_residual(replaced(kResidual, "add(%r, %1)", "add(%h, %1)")))
      << "read by other tiles";
  const std::string two = replaced(kResidual, "  %3: f32[B,T,64] = tanh(%2)",
                                   "  %4: f32[B,T,64] = matmul(%h, %w) {transpose_b = 1}\n"
                                   "  %5: f32[B,T,64] = add(%r, %4)\n"
                                   "  %3: f32[B,T,64] = mul(%2, %5)");
  EXPECT_EQ(projection_step(two).outputs.size(), 2U);
  EXPECT_FALSE(overwrites_residual(two)) << "read by another section";
}

TEST(MakePlan, InputsAndOutputsKeepTheirPlaces) {
  const Graph graph = parse(kMlp);
  const Result<Plan> plan = make_plan(graph, options(Level::O1));
  ASSERT_TRUE(plan.ok());
  // x and y live to the end; %1 and %2 need a place each, of which y may take none: it is alive with %2 only.
  ASSERT_EQ(plan->inputs.size(), 1U);
  ASSERT_EQ(plan->outputs.size(), 1U);
  EXPECT_EQ(plan->dynamic_lower_bound_bytes, 8 * 64 * 4 + 2 * 8 * 32 * 4);
  EXPECT_EQ(plan->dynamic_bytes, plan->dynamic_lower_bound_bytes);
}

TEST(MakePlan, ViewsAreNoLaunchesAndAReshapeAcrossAPermutedAxisIsOne) {
  const Graph graph = parse(R"(graph "views" symbols(B, T, C, R) {
  input %x "x": f32[B,T,4,16]
  %1: f32[B,4,T,16] = permute(%x) {axes = ints[0, 2, 1, 3]}
  %2: f32[B,4,1,T,16] = reshape(%1) {shape = dims[B, 4, 1, T, 16]}
  %3: f32[B,4,T*16] = reshape(%1) {shape = dims[B, 4, 16*T]}
  %4: f32[B,4,T*16] = neg(%3)
  output "y" %4
})");
  const Result<Plan> plan = make_plan(graph, options(Level::O1));
  ASSERT_TRUE(plan.ok()) << plan.error().actual;
  // Row %1 of head h: t is strided by 64, e by 1, so merging t and e copies.
  ASSERT_EQ(plan->launches(), 2);
  EXPECT_EQ(plan->steps[0].op, "copy");
  EXPECT_EQ(plan->steps[1].op, "neg");
}

TEST(MakePlan, StateIsStoredAtItsCapacity) {
  const Graph graph = parse(R"(graph "state" symbols(B, T, C, R) {
  input %x "x": f32[B,T,2,16]
  input %p "p": i32[B,T]
  state %k "k.0": f32[B,C,2,16]
  %1: f32[B,C,2,16] = state_append(%k, %x, %p)
  %2: f32[B,C,2,16] = neg(%1)
  output "y" %2
  update "k.0" %1
})");
  const Result<Plan> plan = make_plan(graph, options(Level::O0));
  ASSERT_TRUE(plan.ok()) << plan.error().actual;
  EXPECT_EQ(plan->state_bytes, 32 * 2 * 16 * 4);
  const OperandSpec& state = plan->steps[1].inputs[0].spec;
  EXPECT_EQ(state.shape[1].to_string(), "C");       // what a step sees
  EXPECT_EQ(state.strides[0].to_string(), "1024");  // the capacity of 32 rows
}

TEST(MakePlan, EveryMissingKernelIsNamedAtOnce) {
  const Graph graph = parse(R"(graph "f8" symbols(B, T, C, R) {
  input %x "x": f8_e4m3[B,T]
  %1: f8_e4m3[B,T] = neg(%x) @"first"
  %2: f8_e4m3[B,T] = abs(%1) @"second"
  output "y" %2
})");
  const Result<Plan> plan = make_plan(graph, options(Level::O1));
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().actual.find("first"), std::string::npos) << plan.error().actual;
  EXPECT_NE(plan.error().actual.find("second"), std::string::npos) << plan.error().actual;
  EXPECT_EQ(plan.error().code, ErrorCode::BadModel);
}

TEST(MakePlan, PrintsKernelsOffsetsAndLifetimes) {
  const Graph graph = parse(kMlp);
  const Result<Plan> plan = make_plan(graph, options(Level::O1));
  ASSERT_TRUE(plan.ok());
  const std::string text = print_plan(*plan);
  EXPECT_NE(text.find("step 0 %1 = matmul by matmul."), std::string::npos) << text;
  EXPECT_NE(text.find("q4_0[32,64] panel16"), std::string::npos) << text;
  EXPECT_NE(text.find("256*B*T"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone
