#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kChain = text(R"(
graph "g" symbols(T) {
  input %x "x": f16[T,64]
  input %y "y": f32[64]
  %two: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %w: f32[T,64] = cast(%x) {to = "f32"}
  %a: f32[T,64] = mul(%w, %two)
  %b: f32[T,64] = add(%a, %y)
  %c: bool[T,64] = less(%b, %w)
  %d: f32[T,64] = select(%c, %b, %two)
  %e: f16[T,64] = cast(%d) {to = "f16"} @"tail"
  output "e" %e
}
)");

const std::string_view kFused = text(R"(
graph "g" symbols(T) {
  input %x "x": f16[T,64]
  input %y "y": f32[64]
  %e: f16[T,64] = fused_elementwise(%x, %y) @"tail" body "fused_elementwise" symbols(T) {
    input %0 "0": f16[T,64]
    input %1 "1": f32[64]
    %2: f32[T,64] = cast(%0) {to = "f32"}
    %3: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
    %4: f32[T,64] = mul(%2, %3)
    %5: f32[T,64] = add(%4, %1)
    %6: bool[T,64] = less(%5, %2)
    %7: f32[T,64] = select(%6, %5, %3)
    %8: f16[T,64] = cast(%7) {to = "f16"}
    output "0" %8
  }
  output "e" %e
}
)");

std::string fused(std::string_view in) {
  return after("fuse-elementwise", in);
}

TEST(FuseElementwise, AChainBecomesOneNode) {
  EXPECT_EQ(fused(kChain), kFused);
}

TEST(FuseElementwise, ASingleNodeStays) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %y: f32[T] = exp(%x)
  output "y" %y
}
)");
  EXPECT_EQ(fused(in), in);
}

TEST(FuseElementwise, AnOutputInTheMiddleCutsTheCluster) {
  const std::string in = replaced(kChain, "  output \"e\" %e\n", "  output \"e\" %e\n  output \"b\" %b\n");
  const Graph graph = parse(fused(in));
  ASSERT_EQ(graph.nodes.size(), 3U) << print_graph(
      graph);  // a cluster on each side of b, and the cast both read
  EXPECT_EQ(count_op(graph, "fused_elementwise"), 2);
  EXPECT_EQ(count_op(graph, "cast"), 1);
}

TEST(FuseElementwise, AViewCutsTheCluster) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,4]
  %a: f32[T,4] = exp(%x)
  %b: f32[4*T] = reshape(%a) {shape = dims[4*T]}
  %c: f32[4*T] = neg(%b)
  output "c" %c
}
)");
  EXPECT_EQ(fused(in), in);
}

TEST(FuseElementwise, AProducerOfAnotherShapeStaysOutside) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,4]
  input %w "w": f32[4]
  %a: f32[4] = exp(%w)
  %b: f32[T,4] = add(%x, %a)
  output "b" %b
}
)");
  EXPECT_EQ(fused(in), in);
}

// f16 arithmetic rounds each result to f16, which a strip register would not.
TEST(FuseElementwise, ArithmeticInAStorageTypeStaysOutside) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f16[T]
  %a: f16[T] = exp(%x)
  %b: f16[T] = neg(%a)
  output "b" %b
}
)");
  EXPECT_EQ(fused(in), in);
  const std::string_view rounded = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %a: f16[T] = cast(%x) {to = "f16"}
  %b: f32[T] = cast(%a) {to = "f32"}
  output "b" %b
}
)");
  EXPECT_EQ(fused(rounded), rounded);
}

// A value read twice inside a cluster joins it, whichever reader is met first.
TEST(FuseElementwise, ADiamondBecomesOneNode) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %a: f32[T] = exp(%x)
  %b: f32[T] = neg(%a)
  %c: f32[T] = sin(%b)
  %d: f32[T] = mul(%a, %c)
  output "d" %d
}
)");
  const Graph graph = parse(fused(in));
  ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
  EXPECT_EQ(graph.nodes[0].body->nodes.size(), 4U);
}

TEST(FuseElementwise, ClustersHaveAtMost24NodesAnd12Inputs) {
  std::string chain = "graph \"g\" symbols(T) {\n  input %0 \"x\": f32[T]\n";
  for (int i = 1; i <= 30; ++i) chain += fmt::format("  %{}: f32[T] = neg(%{})\n", i, i - 1);
  Graph graph = parse(fused(chain + "  output \"y\" %30\n}\n"));
  ASSERT_EQ(graph.nodes.size(), 2U);
  EXPECT_EQ(graph.nodes[0].body->nodes.size(), 6U);
  EXPECT_EQ(graph.nodes[1].body->nodes.size(), 24U);

  std::string sum = "graph \"g\" symbols(T) {\n";
  for (int i = 0; i < 16; ++i) sum += fmt::format("  input %{} \"{}\": f32[T]\n", i, i);
  for (int i = 16; i < 31; ++i)
    sum += fmt::format("  %{}: f32[T] = add(%{}, %{})\n", i, i == 16 ? 0 : i - 1, i - 15);
  graph = parse(fused(sum + "  output \"y\" %30\n}\n"));
  ASSERT_EQ(graph.nodes.size(), 2U);
  for (const Node& node : graph.nodes) EXPECT_LE(node.inputs.size(), 12U);
}

}  // namespace
}  // namespace hone::test
