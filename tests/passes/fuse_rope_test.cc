#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

const std::string_view kHalf = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,8]
  input %cos "cos": f32[B,T,4]
  input %sin "sin": f32[B,T,4]
  %c: f32[B,T,1,4] = reshape(%cos) {shape = dims[B, T, 1, 4]}
  %s: f32[B,T,1,4] = reshape(%sin) {shape = dims[B, T, 1, 4]}
  %first: f32[B,T,2,4] = slice(%x) {axis = 3, range = dims[0, 4]}
  %second: f32[B,T,2,4] = slice(%x) {axis = 3, range = dims[4, 8]}
  %fc: f32[B,T,2,4] = mul(%first, %c)
  %ss: f32[B,T,2,4] = mul(%second, %s)
  %a: f32[B,T,2,4] = sub(%fc, %ss)
  %sc: f32[B,T,2,4] = mul(%second, %c)
  %fs: f32[B,T,2,4] = mul(%first, %s)
  %b: f32[B,T,2,4] = add(%sc, %fs)
  %y: f32[B,T,2,8] = concat(%a, %b) {axis = 3} @"rope"
  output "y" %y
}
)");

const std::string_view kHalfFused = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,8]
  input %cos "cos": f32[B,T,4]
  input %sin "sin": f32[B,T,4]
  %y: f32[B,T,2,8] = rope(%x, %cos, %sin) {interleaved = 0} @"rope" body "rope" symbols(B, T) {
    input %0 "0": f32[B,T,2,8]
    input %1 "1": f32[B,T,4]
    input %2 "2": f32[B,T,4]
    %3: f32[B,T,2,4] = slice(%0) {axis = 3, range = dims[0, 4]}
    %4: f32[B,T,1,4] = reshape(%1) {shape = dims[B, T, 1, 4]}
    %5: f32[B,T,2,4] = mul(%3, %4)
    %6: f32[B,T,2,4] = slice(%0) {axis = 3, range = dims[4, 8]}
    %7: f32[B,T,1,4] = reshape(%2) {shape = dims[B, T, 1, 4]}
    %8: f32[B,T,2,4] = mul(%6, %7)
    %9: f32[B,T,2,4] = sub(%5, %8)
    %10: f32[B,T,2,4] = mul(%6, %4)
    %11: f32[B,T,2,4] = mul(%3, %7)
    %12: f32[B,T,2,4] = add(%10, %11)
    %13: f32[B,T,2,8] = concat(%9, %12) {axis = 3}
    output "0" %13
  }
  output "y" %y
}
)");

const std::string_view kInterleaved = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,8]
  input %cos "cos": f32[B,T,4]
  input %sin "sin": f32[B,T,4]
  %c: f32[B,T,1,4] = reshape(%cos) {shape = dims[B, T, 1, 4]}
  %s: f32[B,T,1,4] = reshape(%sin) {shape = dims[B, T, 1, 4]}
  %pairs: f32[B,T,2,4,2] = reshape(%x) {shape = dims[B, T, 2, 4, 2]}
  %e1: f32[B,T,2,4,1] = slice(%pairs) {axis = 4, range = dims[0, 1]}
  %even: f32[B,T,2,4] = reshape(%e1) {shape = dims[B, T, 2, 4]}
  %o1: f32[B,T,2,4,1] = slice(%pairs) {axis = 4, range = dims[1, 2]}
  %odd: f32[B,T,2,4] = reshape(%o1) {shape = dims[B, T, 2, 4]}
  %ec: f32[B,T,2,4] = mul(%even, %c)
  %os: f32[B,T,2,4] = mul(%odd, %s)
  %a: f32[B,T,2,4] = sub(%ec, %os)
  %oc: f32[B,T,2,4] = mul(%odd, %c)
  %es: f32[B,T,2,4] = mul(%even, %s)
  %b: f32[B,T,2,4] = add(%oc, %es)
  %a1: f32[B,T,2,4,1] = reshape(%a) {shape = dims[B, T, 2, 4, 1]}
  %b1: f32[B,T,2,4,1] = reshape(%b) {shape = dims[B, T, 2, 4, 1]}
  %ab: f32[B,T,2,4,2] = concat(%a1, %b1) {axis = 4}
  %y: f32[B,T,2,8] = reshape(%ab) {shape = dims[B, T, 2, 8]} @"rope"
  output "y" %y
}
)");

const std::string_view kInterleavedFused = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,8]
  input %cos "cos": f32[B,T,4]
  input %sin "sin": f32[B,T,4]
  %y: f32[B,T,2,8] = rope(%x, %cos, %sin) {interleaved = 1} @"rope" body "rope" symbols(B, T) {
    input %0 "0": f32[B,T,2,8]
    input %1 "1": f32[B,T,4]
    input %2 "2": f32[B,T,4]
    %3: f32[B,T,2,4,2] = reshape(%0) {shape = dims[B, T, 2, 4, 2]}
    %4: f32[B,T,2,4,1] = slice(%3) {axis = 4, range = dims[0, 1]}
    %5: f32[B,T,2,4] = reshape(%4) {shape = dims[B, T, 2, 4]}
    %6: f32[B,T,1,4] = reshape(%1) {shape = dims[B, T, 1, 4]}
    %7: f32[B,T,2,4] = mul(%5, %6)
    %8: f32[B,T,2,4,1] = slice(%3) {axis = 4, range = dims[1, 2]}
    %9: f32[B,T,2,4] = reshape(%8) {shape = dims[B, T, 2, 4]}
    %10: f32[B,T,1,4] = reshape(%2) {shape = dims[B, T, 1, 4]}
    %11: f32[B,T,2,4] = mul(%9, %10)
    %12: f32[B,T,2,4] = sub(%7, %11)
    %13: f32[B,T,2,4] = mul(%9, %6)
    %14: f32[B,T,2,4] = mul(%5, %10)
    %15: f32[B,T,2,4] = add(%13, %14)
    %16: f32[B,T,2,4,1] = reshape(%12) {shape = dims[B, T, 2, 4, 1]}
    %17: f32[B,T,2,4,1] = reshape(%15) {shape = dims[B, T, 2, 4, 1]}
    %18: f32[B,T,2,4,2] = concat(%16, %17) {axis = 4}
    %19: f32[B,T,2,8] = reshape(%18) {shape = dims[B, T, 2, 8]}
    output "0" %19
  }
  output "y" %y
}
)");

std::string fused(std::string_view in) {
  return after("fuse-rope", in);
}
std::string unchanged(std::string_view in) {
  return print_graph(parse(in));
}

TEST(FuseRope, HalfSpelling) {
  EXPECT_EQ(fused(kHalf), kHalfFused);
}

TEST(FuseRope, InterleavedSpelling) {
  EXPECT_EQ(fused(kInterleaved), kInterleavedFused);
}

TEST(FuseRope, EveryOrderOfOperands) {
  for (const std::string_view spelling : {kHalf, kInterleaved}) {
    const bool half = spelling == kHalf;
    std::string in = half ? replaced(spelling, "mul(%first, %c)", "mul(%c, %first)")
                          : replaced(spelling, "mul(%even, %c)", "mul(%c, %even)");
    in = half ? replaced(in, "add(%sc, %fs)", "add(%fs, %sc)")
              : replaced(in, "add(%oc, %es)", "add(%es, %oc)");
    const Graph graph = parse(fused(in));
    ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
    EXPECT_EQ(graph.nodes[0].op, "rope");
    EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[1]), "%cos");
    EXPECT_EQ(graph.value_name(graph.nodes[0].inputs[2]), "%sin");
  }
}

// simplify makes one reshape of two, and then no value is x: the pass writes it out again.
TEST(FuseRope, PairsCutFromAWiderRow) {
  std::string in = replaced(kInterleaved, "%x \"x\": f32[B,T,2,8]", "%x \"x\": f32[B,T,16]");
  const Graph graph = parse(fused(in));
  ASSERT_EQ(graph.nodes.size(), 2U) << print_graph(graph);
  EXPECT_EQ(graph.nodes[0].op, "reshape");
  EXPECT_EQ(type_to_string(graph.type(graph.nodes[0].outputs[0])), "f32[B,T,2,8]");
  EXPECT_EQ(graph.nodes[1].op, "rope");
  EXPECT_EQ(graph.nodes[1].inputs[0], graph.nodes[0].outputs[0]);
}

// R = 8 of E = 12: the rest passes through.
TEST(FuseRope, OnlyTheFirstDimsTurn) {
  const std::string wide = replaced(kHalf, "%x \"x\": f32[B,T,2,8]", "%x \"x\": f32[B,T,2,12]");
  const std::string rest = replaced(
      wide, "  %y: f32", "  %rest: f32[B,T,2,4] = slice(%x) {axis = 3, range = dims[8, 12]}\n  %y: f32");
  const std::string three =
      replaced(rest, "%y: f32[B,T,2,8] = concat(%a, %b)", "%y: f32[B,T,2,12] = concat(%a, %b, %rest)");
  std::string nested = replaced(
      rest, "%y: f32[B,T,2,8] = concat(%a, %b) {axis = 3}",
      "%ab: f32[B,T,2,8] = concat(%a, %b) {axis = 3}\n  %y: f32[B,T,2,12] = concat(%ab, %rest) {axis = 3}");
  nested = replaced(nested, "  %first: f32[B,T,2,4] = slice(%x)",
                    "  %turning: f32[B,T,2,8] = slice(%x) {axis = 3, range = dims[0, 8]}\n  %first: "
                    "f32[B,T,2,4] = slice(%turning)");
  nested = replaced(nested, "%second: f32[B,T,2,4] = slice(%x)", "%second: f32[B,T,2,4] = slice(%turning)");
  for (const std::string& in : {three, nested}) {
    const Graph graph = parse(fused(in));
    ASSERT_EQ(graph.nodes.size(), 1U) << print_graph(graph);
    EXPECT_EQ(graph.nodes[0].op, "rope");
    EXPECT_EQ(type_to_string(graph.type(graph.nodes[0].outputs[0])), "f32[B,T,2,12]");
    EXPECT_EQ(type_to_string(graph.type(graph.nodes[0].inputs[1])), "f32[B,T,4]");
  }
  const std::string other_rest = replaced(three, "dims[8, 12]", "dims[7, 11]");
  EXPECT_EQ(fused(other_rest), unchanged(other_rest));
}

TEST(FuseRope, NotIfAnInnerValueIsAnOutput) {
  for (const std::string_view name : {"%a", "%fs"}) {
    const std::string in =
        replaced(kHalf, "  output \"y\" %y\n", fmt::format("  output \"y\" %y\n  output \"z\" {}\n", name));
    EXPECT_EQ(fused(in), unchanged(in));
  }
}

TEST(FuseRope, NotIfItTurnsTheOtherWay) {
  const std::string other_sign = replaced(kHalf, "sub(%fc, %ss)", "sub(%ss, %fc)");
  EXPECT_EQ(fused(other_sign), unchanged(other_sign));
  std::string both_minus = replaced(kHalf, "add(%sc, %fs)", "sub(%sc, %fs)");
  EXPECT_EQ(fused(both_minus), unchanged(both_minus));
}

TEST(FuseRope, NotIfTheHalvesAreCutElsewhere) {
  const std::string overlapping = replaced(kHalf, "dims[4, 8]", "dims[3, 7]");
  EXPECT_EQ(fused(overlapping), unchanged(overlapping));
  const std::string same_column = replaced(kInterleaved, "dims[1, 2]", "dims[0, 1]");
  EXPECT_EQ(fused(same_column), unchanged(same_column));
}

TEST(FuseRope, NotWithTablesOfAnotherShape) {
  // One angle for all tokens: the kernel reads a row of the table for each.
  std::string in = replaced(kHalf, "%cos \"cos\": f32[B,T,4]", "%cos \"cos\": f32[4]");
  in = replaced(in, "%c: f32[B,T,1,4] = reshape(%cos) {shape = dims[B, T, 1, 4]}",
                "%c: f32[1,1,1,4] = reshape(%cos) {shape = dims[1, 1, 1, 4]}");
  EXPECT_EQ(fused(in), unchanged(in));
}

}  // namespace
}  // namespace hone::test
