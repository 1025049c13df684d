// The executor's contract at its edges, and the evaluator that constant folding is handed.
#include "exec/executor.h"

#include <gtest/gtest.h>

#include "run_graph.h"

namespace hone::test {
namespace {

constexpr std::string_view kLine = R"(graph "g" symbols(T) {
  input %x "x": f32[T,4]
  weight %w "w": f32[4]
  %y: f32[T,4] = mul(%x, %w)
  output "y" %y
})";

struct Loaded {
  hone::testing::TemporaryFolder folder;
  Plan plan;
  std::unique_ptr<Executor> executor;
};

// Of kLine with room for eight tokens; `file_text` is the graph whose weights the file holds.
Result<std::unique_ptr<Loaded>> load(std::string_view file_text = kLine) {
  auto out = std::make_unique<Loaded>();
  const Checkpoint checkpoint = HONE_TRY(write_weights(parse(file_text), out->folder));
  out->plan = HONE_TRY(make_plan(parse(kLine), {{Isa::Portable, 2}, Level::O1, {{'T', 8}}}));
  out->executor = HONE_TRY(Executor::create(out->plan, checkpoint, {}));
  return out;
}

TEST(Executor, SizesOutsideTheBoundAreErrors) {
  const Result<std::unique_ptr<Loaded>> loaded = load();
  ASSERT_TRUE(loaded.ok()) << describe(loaded.error());
  Executor& executor = *(*loaded)->executor;
  EXPECT_EQ(executor.bind({}).error().fault, Fault::Hone);
  EXPECT_FALSE(executor.bind({{'T', 0}}).ok());
  EXPECT_FALSE(executor.bind({{'T', 9}}).ok());
  EXPECT_TRUE(executor.bind({{'T', 8}}).ok());
  EXPECT_FALSE(executor.input("no").ok());
  EXPECT_FALSE(executor.output("x").ok());
  EXPECT_EQ(executor.input("x")->size(), 8U * 4 * 4);
}

TEST(Executor, CountsLaunchesAndRecordsEachStep) {
  const Result<std::unique_ptr<Loaded>> loaded = load();
  ASSERT_TRUE(loaded.ok()) << describe(loaded.error());
  Executor& executor = *(*loaded)->executor;
  ASSERT_TRUE(executor.bind({{'T', 3}}).ok());
  Recorder recorder;
  recorder.reserve_launches((*loaded)->plan.steps.size(), executor.pool().threads());
  recorder.begin_phase(Phase::Decode);
  const std::int64_t begin = now_nanoseconds();
  executor.run(&recorder);
  const std::int64_t took = now_nanoseconds() - begin;
  executor.run();
  EXPECT_EQ(executor.launches(), 2);
  const LaunchTotal& total = recorder.launch(Phase::Decode, 0);
  EXPECT_EQ(total.count, 1);
  EXPECT_GT(total.nanoseconds, 0);
  EXPECT_LE(total.nanoseconds, took);
  EXPECT_GT(recorder.busy_ns(Phase::Decode, 0, 0), 0);
  EXPECT_LE(recorder.busy_ns(Phase::Decode, 0, 0), total.nanoseconds);
}

TEST(Executor, AWeightThatTheFileDoesNotHaveAsPlannedIsAnError) {
  constexpr std::string_view kOtherName = R"(graph "g" symbols(T) {
  input %x "x": f32[T,4]
  weight %w "v": f32[4]
  %y: f32[T,4] = mul(%x, %w)
  output "y" %y
})";
  constexpr std::string_view kOtherSize = R"(graph "g" symbols(T) {
  input %x "x": f32[T,8]
  weight %w "w": f32[8]
  %y: f32[T,8] = mul(%x, %w)
  output "y" %y
})";
  EXPECT_FALSE(load(kOtherName).ok());
  EXPECT_FALSE(load(kOtherSize).ok());
  const Result<std::unique_ptr<Loaded>> right = load();
  EXPECT_TRUE(right.ok());
}

ConstantTensor constant(DType dtype, Shape shape, std::vector<double> values) {
  return {{dtype, std::move(shape)}, std::move(values)};
}

std::vector<double> evaluate(Node node, const std::vector<ConstantTensor>& inputs, const Type& output) {
  const Result<std::vector<ConstantTensor>> result =
      ReferenceEvaluator().evaluate(node, inputs, std::span(&output, 1));
  if (!result.ok()) {
    ADD_FAILURE() << describe(result.error());
    return {};
  }
  EXPECT_EQ(result->size(), 1U);
  EXPECT_EQ((*result)[0].type, output);
  return (*result)[0].values;
}

Node node_of(std::string op, Attributes attributes = {}) {
  Node node;
  node.op = std::move(op);
  node.attributes = std::move(attributes);
  return node;
}

TEST(ReferenceEvaluator, ComputesInTheTypeOfTheNode) {
  const ConstantTensor a = constant(DType::F32, {Dim(2), Dim(1)}, {1, 3});
  const ConstantTensor b = constant(DType::F32, {Dim(3)}, {10, 20, 0.1F});
  EXPECT_EQ(evaluate(node_of("mul"), {a, b}, {DType::F32, {Dim(2), Dim(3)}}),
            (std::vector<double>{10, 20, 0.1F, 30, 60, 3 * 0.1F}));
  // Integers wrap.
  const ConstantTensor big = constant(DType::I32, {Dim(1)}, {2147483647});
  const ConstantTensor one = constant(DType::I32, {Dim(1)}, {1});
  EXPECT_EQ(evaluate(node_of("add"), {big, one}, {DType::I32, {Dim(1)}}),
            (std::vector<double>{-2147483648.0}));
}

TEST(ReferenceEvaluator, CopiesViewsIntoRowMajorOrder) {
  Attributes axes;
  axes.set("axes", std::vector<std::int64_t>{1, 0});
  const ConstantTensor a = constant(DType::F32, {Dim(2), Dim(3)}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(evaluate(node_of("permute", axes), {a}, {DType::F32, {Dim(3), Dim(2)}}),
            (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(ReferenceEvaluator, AnUnknownOpIsAnError) {
  const ConstantTensor a = constant(DType::F32, {Dim(1)}, {1});
  const Type type{DType::F32, {Dim(1)}};
  EXPECT_FALSE(
      ReferenceEvaluator().evaluate(node_of("no_such_op"), std::span(&a, 1), std::span(&type, 1)).ok());
}

// The same numbers come out of fold-constants, and nothing of the chain is left to run.
TEST(ReferenceEvaluator, FoldsAChainOfConstants) {
  Graph graph = parse(R"(graph "g" symbols(T) {
  input %x "x": f32[T,2]
  %a: f32[2] = constant() {dtype = "f32", shape = dims[2], values = reals[4.0, 9.0]}
  %b: f32[2] = sqrt(%a)
  %c: f32[2] = neg(%b)
  %y: f32[T,2] = mul(%x, %c)
  output "y" %y
})");
  const Result<const PassRow*> fold = find_pass("fold-constants");
  ASSERT_TRUE(fold.ok());
  const ReferenceEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  ASSERT_TRUE(run_pass(graph, **fold, {}, context).ok());
  const UseMap uses(graph);
  const Node& product =
      graph.nodes[static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(graph.outputs[0].value)])];
  const Node& folded =
      graph.nodes[static_cast<std::size_t>(uses.producer[static_cast<std::size_t>(product.inputs[1])])];
  EXPECT_EQ(folded.op, "constant") << print_graph(graph);
  EXPECT_NE(print_graph(graph).find("reals[-2.0, -3.0]"), std::string::npos) << print_graph(graph);
}

}  // namespace
}  // namespace hone::test
