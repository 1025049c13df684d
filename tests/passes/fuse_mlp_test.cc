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

// gelu by tanh, as Gemma's feed-forward has it.
std::string with_gelu(std::string_view half = "%h: f32[T,96] = mul(%g, %c5)") {
  std::string in(kSpelledOut);
  const std::size_t begin = in.find("  %n: f32");
  const std::size_t end = in.find("  %y: f32");
  in.replace(
      begin, end - begin,
      "  %c5: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[0.5]}\n"
      "  %c3: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[0.044715]}\n"
      "  %cs: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[0.7978845608028654]}\n"
      "  %g2: f32[T,96] = mul(%g, %g)\n"
      "  %g3: f32[T,96] = mul(%g2, %g)\n"
      "  %k: f32[T,96] = mul(%g3, %c3)\n"
      "  %a: f32[T,96] = add(%g, %k)\n"
      "  %i: f32[T,96] = mul(%a, %cs)\n"
      "  %t: f32[T,96] = tanh(%i)\n"
      "  %f: f32[T,96] = add(%t, %one)\n"
      "  HALF\n"
      "  %s: f32[T,96] = mul(%h, %f)\n");
  return replaced(in, "HALF", half);
}

TEST(FuseMlp, Gelu) {
  const std::string commuted =
      replaced(replaced(replaced(with_gelu("%h: f32[T,96] = mul(%c5, %g)"), "mul(%g3, %c3)", "mul(%c3, %g3)"),
                        "add(%g, %k)", "add(%k, %g)"),
               "mul(%h, %f)", "mul(%f, %h)");
  std::string power =
      replaced(with_gelu(), "%g3: f32[T,96] = mul(%g2, %g)", "%g3: f32[T,96] = pow(%g, %three)");
  power = replaced(power, "  %g2: f32[T,96] = mul(%g, %g)\n",
                   "  %three: f32[] = constant() {dtype = \"f32\", shape = dims[], values = reals[3.0]}\n");
  for (const std::string& in : {with_gelu(), commuted, power}) {
    const Graph graph = parse(fused(in));
    ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
    EXPECT_EQ(graph.nodes[0].op, "geglu_mlp");
    const std::string names[] = {"%x", "%wg", "%wu"};
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[i]), names[i]);
  }
}

TEST(FuseMlp, NotWithAnotherGelu) {
  for (const auto& [from, to] :
       {std::pair{"0.044715", "0.0447"}, std::pair{"0.7978845608028654", "0.8"},
        std::pair{"reals[0.5]", "reals[0.25]"}, std::pair{"reals[1.0]", "reals[2.0]"},
        std::pair{"mul(%g2, %g)", "mul(%g2, %u)"}, std::pair{"mul(%g, %c5)", "mul(%u, %c5)"},
        std::pair{"= tanh(%i)", "= exp(%i)"}}) {
    const std::string in = replaced(with_gelu(), from, to);
    EXPECT_EQ(fused(in), unchanged(in)) << from;
  }
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
