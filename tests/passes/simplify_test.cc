// simplify, rule by rule: where each fires, and where it must not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pass_test.h"

namespace hone::test {
namespace {

struct Case {
  std::string_view rule;
  std::string_view lines;  // from %x0 [T,4] to %y [T,4]
  std::string_view number = "1.0";
  std::string_view dtype = "f32";
};

// The lines, with a constant c, as the only thing between input and output.
std::string around(const Case& of) {
  return fmt::format(
      "graph \"g\" symbols(T) {{\n  input %x \"x\": {2}[T,4]\n"
      "  %c: {2}[] = constant() {{dtype = \"{2}\", shape = dims[], values = reals[{1}]}}\n"
      "  %x0: {2}[T,4] = abs(%x)\n  {0}\n  %z: {2}[T,4] = abs(%y)\n  output \"z\" %z\n}}\n",
      of.lines, of.number, of.dtype);
}

constexpr Case kFires[] = {
    {"multiply-by-one", "%y: f32[T,4] = mul(%x0, %c)"},
    {"multiply-by-one", "%y: f32[T,4] = mul(%c, %x0)"},
    {"divide-by-one", "%y: f32[T,4] = div(%x0, %c)"},
    {"add-nothing", "%y: f32[T,4] = add(%x0, %c)", "-0.0"},
    {"add-nothing", "%y: f32[T,4] = add(%c, %x0)", "-0.0"},
    {"add-nothing", "%y: i32[T,4] = add(%x0, %c)", "0.0", "i32"},
    {"subtract-zero", "%y: f32[T,4] = sub(%x0, %c)", "0.0"},
    {"double-negation", "%n: f32[T,4] = neg(%x0)\n  %y: f32[T,4] = neg(%n)"},
    {"cast-to-same-type", "%y: f32[T,4] = cast(%x0) {to = \"f32\"}"},
    {"reshape-to-same-shape", "%y: f32[T,4] = reshape(%x0) {shape = dims[T, 4]}"},
    {"broadcast-to-same-shape", "%y: f32[T,4] = broadcast(%x0) {shape = dims[T, 4]}"},
    {"slice-of-whole", "%y: f32[T,4] = slice(%x0) {axis = 1, range = dims[0, 4]}"},
    {"identity-permute", "%y: f32[T,4] = permute(%x0) {axes = ints[0, 1]}"},
    {"concat-of-one", "%y: f32[T,4] = concat(%x0) {axis = 1}"},
};

TEST(Simplify, EachRuleAlone) {
  for (const Case& of : kFires) {
    const auto [text_after, fired] = after_and_fired("simplify", around(of));
    EXPECT_EQ(fired, fmt::format("{} 1", of.rule)) << of.lines;
    EXPECT_EQ(text_after, fmt::format("graph \"g\" symbols(T) {{\n  input %x \"x\": {0}[T,4]\n"
                                      "  %x0: {0}[T,4] = abs(%x)\n  %z: {0}[T,4] = abs(%x0)\n"
                                      "  output \"z\" %z\n}}\n",
                                      of.dtype))
        << of.lines;
  }
}

constexpr Case kStays[] = {
    {"multiply-by-one", "%y: f32[T,4] = mul(%x0, %c)", "2.0"},
    {"multiply-by-one", "%y: f32[T,4] = mul(%x0, %c)", "-1.0"},
    {"divide-by-one", "%y: f32[T,4] = div(%c, %x0)"},
    {"add-nothing", "%y: f32[T,4] = add(%x0, %c)", "0.0"},     // -0.0 + 0.0 is 0.0
    {"subtract-zero", "%y: f32[T,4] = sub(%x0, %c)", "-0.0"},  // -0.0 - -0.0 is 0.0
    {"subtract-zero", "%y: f32[T,4] = sub(%c, %x0)", "0.0"},
    {"double-negation", "%n: f32[T,4] = abs(%x0)\n  %y: f32[T,4] = neg(%n)"},
    {"cast-to-same-type",
     "%n: f16[T,4] = cast(%x0) {to = \"f16\"}\n  %y: f32[T,4] = cast(%n) {to = \"f32\"}"},
    {"reshape-to-same-shape",
     "%n: f32[4*T] = reshape(%x0) {shape = dims[4*T]}\n  %m: f32[4*T] = exp(%n)\n"
     "  %y: f32[T,4] = reshape(%m) {shape = dims[T, 4]}"},
    {"broadcast-to-same-shape",
     "%n: f32[T,4] = broadcast(%c) {shape = dims[T, 4]}\n  %y: f32[T,4] = exp(%n)"},
    {"slice-of-whole",
     "%n: f32[T,2] = slice(%x0) {axis = 1, range = dims[0, 2]}\n"
     "  %y: f32[T,4] = concat(%n, %n) {axis = 1}"},
    {"identity-permute",
     "%n: f32[4,T] = permute(%x0) {axes = ints[1, 0]}\n  %m: f32[4,T] = exp(%n)\n"
     "  %y: f32[T,4] = permute(%m) {axes = ints[1, 0]}"},
    {"concat-of-one",
     "%n: f32[T,8] = concat(%x0, %x0) {axis = 1}\n"
     "  %y: f32[T,4] = slice(%n) {axis = 1, range = dims[0, 4]}"},
};

TEST(Simplify, NotWhereABitOrAShapeWouldChange) {
  for (const Case& of : kStays) {
    const auto [text_after, fired] = after_and_fired("simplify", around(of));
    EXPECT_EQ(fired, "") << of.rule << ": " << of.lines;
    // The constant goes where the lines do not read it.
    EXPECT_EQ(text_after, after("dce", around(of))) << of.rule << ": " << of.lines;
  }
}

TEST(Simplify, NotIfTheOperandBroadcasts) {
  for (const std::string_view op : {"mul", "div", "add", "sub"}) {
    const std::string_view number = op == "add" ? "-0.0" : op == "sub" ? "0.0" : "1.0";
    const std::string in = fmt::format(
        "graph \"g\" symbols(T) {{\n  input %x \"x\": f32[4]\n"
        "  %c: f32[2,1] = constant() {{dtype = \"f32\", shape = dims[2, 1], values = reals[{1}, {1}]}}\n"
        "  %d: f32[1,1] = constant() {{dtype = \"f32\", shape = dims[1, 1], values = reals[{1}]}}\n"
        "  %y: f32[2,4] = {0}(%x, %c)\n  %z: f32[1,4] = {0}(%x, %d)\n"
        "  output \"y\" %y\n  output \"z\" %z\n}}\n",
        op, number);
    EXPECT_EQ(after_and_fired("simplify", in), (std::pair<std::string, std::string>(in, "")));
  }
}

TEST(Simplify, ViewsOfViewsAndThenNothing) {
  const Case reshapes{
      "",
      "%n: f32[4*T] = reshape(%x0) {shape = dims[4*T]}\n  %y: f32[T,4] = reshape(%n) {shape = dims[T, 4]}"};
  EXPECT_EQ(after_and_fired("simplify", around(reshapes)).second,
            "reshape-of-reshape 1, reshape-to-same-shape 1");
  const Case permutes{
      "",
      "%n: f32[4,T] = permute(%x0) {axes = ints[1, 0]}\n  %y: f32[T,4] = permute(%n) {axes = ints[1, 0]}"};
  EXPECT_EQ(after_and_fired("simplify", around(permutes)).second, "permute-of-permute 1, identity-permute 1");
}

TEST(Simplify, ChainsOfViewsBecomeOne) {
  const auto [text_after, fired] = after_and_fired("simplify", text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,2,3]
  %a: f32[3,T,2] = permute(%x) {axes = ints[2, 0, 1]}
  %b: f32[2,3,T] = permute(%a) {axes = ints[2, 0, 1]}
  %c: f32[6*T] = reshape(%b) {shape = dims[6*T]}
  %d: f32[6,T] = reshape(%c) {shape = dims[6, T]}
  output "d" %d
}
)"));
  EXPECT_EQ(fired, "permute-of-permute 1, reshape-of-reshape 1");
  EXPECT_EQ(text_after, text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,2,3]
  %b: f32[2,3,T] = permute(%x) {axes = ints[1, 2, 0]}
  %d: f32[6,T] = reshape(%b) {shape = dims[6, T]}
  output "d" %d
}
)"));
}

TEST(Simplify, AnOutputIsNeverAnInput) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %y: f32[T] = reshape(%x) {shape = dims[T]}
  output "y" %y
}
)");
  EXPECT_EQ(after("simplify", in), in);
}

}  // namespace
}  // namespace hone::test
