#include "graph/builder.h"

#include "graph_test.h"

namespace hone::test {
namespace {

const Dim T = Dim::symbol('T');  // NOLINT(readability-identifier-naming)

TEST(Builder, BuildsWithInferredTypesAndModules) {
  GraphBuilder build("mlp", "T");
  const ValueId x = build.input("x", {DType::F32, {T, Dim(4)}});
  const ValueId w = build.weight("up.weight", {DType::Q8_0, {Dim(8), Dim(4)}});
  {
    const GraphBuilder::Scope layer(build, "layers.0");
    const GraphBuilder::Scope up(build, "up");
    build.output("y", build.matmul_transposed(x, w));
  }
  build.output("z", build.add(x, build.scalar(1)));
  const Result<Graph> graph = build.finish();
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(print_graph(*graph), text(R"(
graph "mlp" symbols(T) {
  input %0 "x": f32[T,4]
  weight %1 "up.weight": q8_0[8,4]
  %2: f32[T,8] = matmul(%0, %1) {transpose_b = 1} @"layers.0.up"
  %3: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %4: f32[T,4] = add(%0, %3)
  output "y" %2
  output "z" %4
}
)"));
}

TEST(Builder, OneWeightPerName) {
  GraphBuilder build("g", "T");
  const ValueId a = build.weight("w", {DType::F32, {Dim(4)}});
  EXPECT_EQ(build.weight("w", {DType::F32, {Dim(4)}}), a);
}

TEST(Builder, TheFirstErrorComesOut) {
  GraphBuilder build("g", "T");
  const ValueId x = build.input("x", {DType::F32, {T, Dim(4)}});
  const ValueId y = build.input("y", {DType::F32, {T, Dim(5)}});
  {
    const GraphBuilder::Scope scope(build, "layers.7");
    build.output("z", build.add(x, y));
  }
  EXPECT_TRUE(build.failed());
  build.output("other", build.node("no_such_op", {x}));
  const Result<Graph> graph = build.finish();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().where, "op add of layers.7");
  EXPECT_EQ(graph.error().message, "shapes do not broadcast");
  EXPECT_EQ(graph.error().actual, "f32[T,4], f32[T,5]");
}

TEST(Builder, AnUnknownOpGetsAHint) {
  GraphBuilder build("g", "T");
  const ValueId x = build.input("x", {DType::F32, {T}});
  build.output("y", build.node("rsqr", {x}));
  EXPECT_EQ(build.finish().error().next_step, "did you mean 'rsqrt'?");
}

TEST(Builder, FinishVerifies) {
  GraphBuilder build("g", "T");
  build.state("k", {DType::F32, {T, T, Dim(4)}});
  const Result<Graph> graph = build.finish();
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().message, "a state has no update");
}

}  // namespace
}  // namespace hone::test
