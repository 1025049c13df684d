#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kSpelledOut = text(R"(
graph "g" symbols(T) {
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
}
)");

const std::string_view kFused = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %wg "gate": q8_0[96,64]
  weight %wu "up": q8_0[96,64]
  %y: f32[T,96] = swiglu_mlp(%x, %wg, %wu) @"mlp" body "swiglu_mlp" symbols(T) {
    input %0 "0": f32[T,64]
    input %1 "1": q8_0[96,64]
    input %2 "2": q8_0[96,64]
    %3: f32[T,96] = matmul(%0, %1) {transpose_b = 1}
    %4: f32[T,96] = matmul(%0, %2) {transpose_b = 1}
    %5: f32[T,96] = neg(%3)
    %6: f32[T,96] = exp(%5)
    %7: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
    %8: f32[T,96] = add(%6, %7)
    %9: f32[T,96] = div(%3, %8)
    %10: f32[T,96] = mul(%9, %4)
    output "0" %10
  }
  output "y" %y
}
)");

std::string fused(std::string_view in) {
  return after("fuse-mlp", in);
}
std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

void expect_one_mlp(const std::string& in) {
  const Graph graph = parse(fused(in));
  ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
  EXPECT_EQ(graph.nodes[0].op, "swiglu_mlp");
  const std::string names[] = {"%x", "%wg", "%wu"};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[i]), names[i]);
}

TEST(FuseMlp, SevenNodesBecomeOne) {
  EXPECT_EQ(fused(kSpelledOut), kFused);
}

TEST(FuseMlp, OtherSpellings) {
  expect_one_mlp(replaced(kSpelledOut, "mul(%s, %u)", "mul(%u, %s)"));
  expect_one_mlp(replaced(kSpelledOut, "add(%e, %one)", "add(%one, %e)"));
  expect_one_mlp(replaced(kSpelledOut, "%s: f32[T,96] = div(%g, %d)",
                          "%r: f32[T,96] = div(%one, %d)\n  %s: f32[T,96] = mul(%g, %r)"));
}

TEST(FuseMlp, NotWithWeightsOfDifferentType) {
  const std::string in = replaced(kSpelledOut, "\"up\": q8_0", "\"up\": q4_0");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseMlp, NotIfTheRightOperandIsNoWeight) {
  std::string in = replaced(kSpelledOut, "weight %wg \"gate\": q8_0", "input %wg \"gate\": f32");
  in = replaced(in, "\"up\": q8_0", "\"up\": f32");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseMlp, NotIfTheGateHasAnotherUser) {
  const std::string in = replaced(kSpelledOut, "  output \"y\" %y\n",
                                  "  %z: f32[T,96] = abs(%g)\n  output \"y\" %y\n  output \"z\" %z\n");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseMlp, NotIfTheProductsReadDifferentValues) {
  std::string in = replaced(kSpelledOut, "  weight %wg", "  input %z \"z\": f32[T,64]\n  weight %wg");
  in = replaced(in, "%u: f32[T,96] = matmul(%x,", "%u: f32[T,96] = matmul(%z,");
  EXPECT_EQ(fused(in), unchanged(in));
}

TEST(FuseMlp, NotWithAnotherGate) {
  const std::string two = replaced(kSpelledOut, "reals[1.0]", "reals[2.0]");
  EXPECT_EQ(fused(two), unchanged(two));
  const std::string sigmoid_of_up = replaced(kSpelledOut, "neg(%g)", "neg(%u)");
  EXPECT_EQ(fused(sigmoid_of_up), unchanged(sigmoid_of_up));
}

}  // namespace
}  // namespace hone::test
