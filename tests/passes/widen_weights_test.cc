#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kNorm = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %w "norm": bf16[64]
  %f: f32[64] = cast(%w) {to = "f32"}
  %g: f32[64] = cast(%w) {to = "f32"}
  %a: f32[T,64] = mul(%x, %f)
  %y: f32[T,64] = add(%a, %g)
  output "y" %y
}
)");

std::string widened(std::string_view in) {
  return after("widen-weights", in);
}
void expect_unchanged(const std::string& in) {
  EXPECT_EQ(widened(in), print_graph(parse(in)));
}

TEST(WidenWeights, AVectorReadAsF32IsStoredAsF32) {
  for (const std::string_view type : {"bf16", "f16"}) {
    EXPECT_EQ(widened(replaced(kNorm, "bf16", type)), text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  weight %f "norm": f32[64]
  %a: f32[T,64] = mul(%x, %f)
  %y: f32[T,64] = add(%a, %f)
  output "y" %y
}
)")) << type;
  }
}

TEST(WidenWeights, OtherReadersKeepTheType) {
  // Read as it is, too.
  expect_unchanged(
      replaced(replaced(kNorm, "%g: f32[64] = cast(%w) {to = \"f32\"}", "%g: bf16[64] = neg(%w)"),
               "add(%a, %g)", "add(%a, %f)"));
  // Cast to another type, too.
  expect_unchanged(replaced(
      replaced(kNorm, "%g: f32[64] = cast(%w) {to = \"f32\"}", "%g: f16[64] = cast(%w) {to = \"f16\"}"),
      "add(%a, %g)", "add(%a, %f)"));
  // An output of the graph.
  expect_unchanged(replaced(kNorm, "output \"y\" %y", "output \"y\" %y\n  output \"f\" %f"));
}

TEST(WidenWeights, MatricesAndInputsAreLeftAlone) {
  expect_unchanged(replaced(kNorm, "weight %w \"norm\"", "input %w \"norm\""));
  const std::string_view matrix = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[64,64]
  weight %w "m": bf16[64,64]
  %f: f32[64,64] = cast(%w) {to = "f32"}
  %y: f32[64,64] = mul(%x, %f)
  output "y" %y
}
)");
  expect_unchanged(std::string(matrix));
}

}  // namespace
}  // namespace hone::test
