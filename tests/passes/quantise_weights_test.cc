#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kProduct = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,64]
  weight %w "w": f16[32,64]
  %y: f32[B,T,32] = matmul(%x, %w) {transpose_b = 1}
  output "y" %y
}
)");

PassContext asking(std::optional<DType> dtype = DType::Q8_0) {
  PassContext context;
  context.precision.weights = dtype;
  return context;
}

void expect_stays(const std::string& in) {
  EXPECT_EQ(after("quantise-weights", in, asking()), print_graph(parse(in)));
}

TEST(QuantiseWeights, MatricesOfEveryFloatType) {
  for (const std::string_view type : {"f32", "f16", "bf16"}) {
    const auto [out, fired] = after_and_fired("quantise-weights", replaced(kProduct, "f16", type), asking());
    EXPECT_EQ(out, replaced(kProduct, "f16", "q8_0"));
    EXPECT_EQ(fired, std::string(type) + " 1");
  }
}

TEST(QuantiseWeights, OnlyWhereThePolicyAsks) {
  EXPECT_EQ(after("quantise-weights", kProduct, asking(std::nullopt)), kProduct);
  EXPECT_EQ(after("quantise-weights", kProduct), kProduct);
  EXPECT_EQ(after("quantise-weights", kProduct, asking(DType::Q4_0)),
            "pass quantise-weights: --weights: weights cannot be loaded as this type");
}

TEST(QuantiseWeights, NotOtherMatrices) {
  // Quantised already, in no whole blocks, given anew at each step.
  expect_stays(replaced(kProduct, "f16", "q4_0"));
  expect_stays(replaced(replaced(kProduct, "f16[32,64]", "f16[32,48]"), "f32[B,T,64]", "f32[B,T,48]"));
  expect_stays(replaced(kProduct, "weight %w", "input %w"));
}

TEST(QuantiseWeights, NotWhatAnythingElseReads) {
  // A table, an output, the other operand, a matrix read along its other axis.
  expect_stays(
      replaced(kProduct, "  output \"y\"",
               "  %i: i32[2] = constant() {dtype = \"i32\", shape = dims[2], values = reals[0.0, 1.0]}\n"
               "  %t: f32[2,64] = gather(%w, %i)\n  output \"t\" %t\n  output \"y\""));
  expect_stays(replaced(kProduct, "  output \"y\"", "  output \"w\" %w\n  output \"y\""));
  std::string in =
      replaced(kProduct, "  output \"y\"",
               "  %z: f32[32,32] = matmul(%w, %w) {transpose_b = 1}\n  output \"z\" %z\n  output \"y\"");
  expect_stays(in);
  in = replaced(replaced(kProduct, "f16[32,64]", "f16[64,32]"), " {transpose_b = 1}", "");
  expect_stays(in);
}

// Behind a softmax and a view, and not behind another product.
TEST(QuantiseWeights, NotARouter) {
  const std::string_view choice =
      "  %e: f32[B,T,32] = exp(%y)\n  %v: f32[1,B,T,32] = reshape(%e) {shape = dims[1, B, T, 32]}\n"
      "  %k: i32[1,B,T,2] = top_k(%v) {k = 2}\n  output \"k\" %k\n  output \"y\"";
  expect_stays(replaced(kProduct, "  output \"y\"", choice));
  std::string in = replaced(kProduct, "  output \"y\"", choice);
  in = replaced(in, "exp(%y)", "matmul(%y, %u) {transpose_b = 1}");
  in = replaced(in, "  %y:", "  weight %u \"u\": f32[32,32]\n  %y:");
  const std::string out = after("quantise-weights", in, asking());
  EXPECT_NE(out.find("\"w\": q8_0[32,64]"), std::string::npos) << out;
  EXPECT_NE(out.find("\"u\": f32[32,32]"), std::string::npos) << out;
}

}  // namespace
}  // namespace hone::test
