#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kSpelledOut = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w "w": f32[64]
  %eps: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
  %s: f32[T,64] = mul(%x, %x)
  %m: f32[T,1] = reduce_mean(%s) {axis = -1, keep_dims = 1}
  %a: f32[T,1] = add(%m, %eps)
  %r: f32[T,1] = rsqrt(%a)
  %n: f32[T,64] = mul(%x, %r)
  %y: f32[T,64] = mul(%n, %w) @"norm"
  output "y" %y
}
)");

const std::string_view kFused = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w "w": f32[64]
  %y: f32[T,64] = rms_norm(%x, %w) {eps = 1e-05} @"norm" body "rms_norm" symbols(T) {
    input %0 "0": f32[T,64]
    input %1 "1": f32[64]
    %2: f32[T,64] = mul(%0, %0)
    %3: f32[T,1] = reduce_mean(%2) {axis = -1, keep_dims = 1}
    %4: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1e-05]}
    %5: f32[T,1] = add(%3, %4)
    %6: f32[T,1] = rsqrt(%5)
    %7: f32[T,64] = mul(%0, %6)
    %8: f32[T,64] = mul(%7, %1)
    output "0" %8
  }
  output "y" %y
}
)");

std::string fused(std::string_view in) {
  return after("fuse-norm", in);
}
std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

// One fused node and nothing else.
void expect_one_norm(const std::string& in, double eps = 1e-5) {
  const Graph graph = parse(fused(in));
  ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
  EXPECT_EQ(graph.nodes[0].op, "rms_norm");
  EXPECT_EQ(graph.nodes[0].attributes.real("eps"), eps);
  EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[0]), "%x");
  EXPECT_EQ(graph.type(graph.nodes[0].inputs[1]), (Type{DType::F32, {Dim(64)}}));
}

TEST(FuseNorm, SixNodesBecomeOne) {
  EXPECT_EQ(fused(kSpelledOut), kFused);
}

TEST(FuseNorm, EveryOrderOfOperands) {
  expect_one_norm(replaced(kSpelledOut, "mul(%n, %w)", "mul(%w, %n)"));
  expect_one_norm(replaced(kSpelledOut, "mul(%x, %r)", "mul(%r, %x)"));
  expect_one_norm(replaced(kSpelledOut, "add(%m, %eps)", "add(%eps, %m)"));
}

TEST(FuseNorm, RootAsAQuotientOrADivisor) {
  const std::string root = replaced(kSpelledOut, "%r: f32[T,1] = rsqrt(%a)", "%q: f32[T,1] = sqrt(%a)");
  expect_one_norm(replaced(root, "mul(%x, %r)", "div(%x, %q)"));
  const std::string one = replaced(
      root, "  %s: f32",
      "  %one: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[1.0]}\n  %s: f32");
  expect_one_norm(replaced(one, "  %n: f32", "  %r: f32[T,1] = div(%one, %q)\n  %n: f32"));
}

TEST(FuseNorm, MeanAsASumDividedByTheExtent) {
  const std::string sum = replaced(kSpelledOut, "%m: f32[T,1] = reduce_mean", "%t: f32[T,1] = reduce_sum");
  const auto scaled = [&](std::string_view op, std::string_view number) {
    return replaced(sum, "  %a: f32",
                    fmt::format("  %c: f32[] = constant() {{dtype = \"f32\", shape = dims[], values = "
                                "reals[{}]}}\n  %m: f32[T,1] = {}(%t, %c)\n  %a: f32",
                                number, op));
  };
  expect_one_norm(scaled("mul", "0.015625"));
  expect_one_norm(scaled("div", "64.0"));
  EXPECT_EQ(count_op(parse(fused(scaled("div", "63.0"))), "rms_norm"), 0);
  EXPECT_EQ(count_op(parse(fused(scaled("mul", "0.0156"))), "rms_norm"), 0);
}

TEST(FuseNorm, WeightBehindAReshape) {
  expect_one_norm(replaced(
      replaced(kSpelledOut, "  %s: f32", "  %v: f32[1,64] = reshape(%w) {shape = dims[1, 64]}\n  %s: f32"),
      "mul(%n, %w)", "mul(%n, %v)"));
}

// Gemma's norms multiply by 1 + w.
TEST(FuseNorm, WeightWithAnOffset) {
  const std::string_view kOne =
      "  %one: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[1.0]}\n";
  for (const std::string_view sum : {"add(%w, %one)", "add(%one, %w)"}) {
    const std::string in = replaced(replaced(kSpelledOut, "mul(%n, %w)", "mul(%n, %w1)"), "  %s: f32",
                                    fmt::format("{}  %w1: f32[64] = {}\n  %s: f32", kOne, sum));
    expect_one_norm(in);
    const Graph graph = parse(fused(in));
    EXPECT_EQ(graph.nodes[0].attributes.real("offset"), 1.0);
    EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[1]), "%w");
  }
  // The sum of two weights is the weight.
  const std::string both = replaced(replaced(replaced(kSpelledOut, "mul(%n, %w)", "mul(%n, %w1)"),
                                             "  %s: f32", "  %w1: f32[64] = add(%w, %v)\n  %s: f32"),
                                    "  %eps: f32",
                                    "  %zero: i32[64] = iota() {axis = 0, shape = dims[64]}\n  %v: f32[64] = "
                                    "cast(%zero) {to = \"f32\"}\n  %eps: f32");
  const Graph graph = parse(fused(both));
  ASSERT_EQ(count_op(graph, "rms_norm"), 1);
  EXPECT_EQ(graph.nodes.back().attributes.find("offset"), nullptr);
  EXPECT_EQ(graph.value_name(graph.nodes.back().inputs[1]), "%w1");
}

TEST(FuseNorm, NotIfEpsIsNoConstant) {
  std::string in = replaced(kSpelledOut, "  weight %w", "  input %eps \"eps\": f32[]\n  weight %w");
  in = replaced(in, "  %eps: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[1e-05]}\n",
                "");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseNorm, NotIfTheNormedValueIsAnOutput) {
  const std::string in =
      replaced(kSpelledOut, "  output \"y\" %y\n", "  output \"y\" %y\n  output \"n\" %n\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseNorm, NotIfTheRootHasAnotherUser) {
  const std::string in = replaced(kSpelledOut, "  output \"y\" %y\n",
                                  "  %z: f32[T,1] = neg(%r)\n  output \"y\" %y\n  output \"z\" %z\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseNorm, NotIfAnotherValueIsNormed) {
  std::string in = replaced(kSpelledOut, "  weight %w", "  input %z \"z\": f32[T,64]\n  weight %w");
  in = replaced(in, "mul(%x, %r)", "mul(%z, %r)");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseNorm, NotIfTheWeightHasAnotherShape) {
  std::string in = replaced(kSpelledOut, "f32[64]\n", "f32[T,64]\n");
  EXPECT_EQ(fused(in), unchanged(in));
  in = replaced(kSpelledOut, "f32[64]\n", "f32[1]\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseNorm, NotAlongAnotherAxis) {
  std::string in =
      replaced(kSpelledOut, "f32[T,1] = reduce_mean(%s) {axis = -1", "f32[1,64] = reduce_mean(%s) {axis = 0");
  in = replaced(in, "%a: f32[T,1]", "%a: f32[1,64]");
  in = replaced(in, "%r: f32[T,1]", "%r: f32[1,64]");
  EXPECT_EQ(fused(in), unchanged(in));
}

}  // namespace
}  // namespace hone::test
