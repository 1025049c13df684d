#include "graph/text.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "graph/op_row.h"
#include "graph_test.h"

namespace hone::test {
namespace {

const std::string_view kAll = text(R"(
graph "a \"quoted\" \\ name" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %p "p": i32[B,T]
  weight %w "w": q4_1[128,64]
  state %s "k": f16[B,C,2,16]
  %0: f32[B,T,128] = matmul(%x, %w) {transpose_b = 1} @"layers.0.up"
  %1: f32[B,T,128] = fused_elementwise(%0) {a = -3, b = 1e-05, c = "text \x0a", d = ints[1, -2], e = reals[1.0, -inf, inf, nan, -0.0, 1e+300], f = dims[T, 2*B, max(C, T), ceil_div(T, 16)], g = ints[], h = reals[], i = dims[]} @"m" body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,128]
    %1: f32[B,T,128] = neg(%0)
    output "0" %1
  }
  %7: f16[B,T,2,16] = odd_op() {k = 9223372036854775807}
  %8: f16[B,C,2,16] = state_append(%s, %7, %p)
  %9: f32[] = many(%0, %1, %0)
  %10: f32[T], %11: i32[] = pair(%x)
  output "y" %9
  update "k" %8
}
)");

TEST(Text, PrintsWhatItReads) {
  EXPECT_EQ(print_graph(parse(kAll)), kAll);
}

TEST(Text, NumbersThatAreNamesKeepTheirValue) {
  const Graph graph = parse(kAll);
  EXPECT_EQ(graph.nodes[0].outputs[0], 0);
  EXPECT_EQ(graph.nodes[2].outputs[0], 7);
  EXPECT_GT(graph.inputs[0].value, 11);  // %x comes after all numbers
}

TEST(Text, BlanksAndCommentsDoNotMatter) {
  const std::string in =
      "# first\ngraph\"g\"symbols(T){input%x\"x\":f32[ T , 4*T ]# note\n%0:f32[T,4*T]=neg( %x "
      ")\n\noutput\"y\"%0}#end";
  EXPECT_EQ(print_graph(parse(in)), text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,4*T]
  %0: f32[T,4*T] = neg(%x)
  output "y" %0
}
)"));
}

TEST(Text, RealsReadBackToTheSameBits) {
  for (const double value : {0.1, 1.0 / 3, 1e-320, 5e-324, 1.7976931348623157e308, -2.5, 16777217.0, 1e22}) {
    Node node;
    Graph graph;
    graph.name = "g";
    node.op = "op";
    node.outputs = {graph.add_value({})};
    node.attributes.set("v", value);
    graph.nodes.push_back(node);
    const Graph back = parse(print_graph(graph));
    EXPECT_EQ(back.nodes[0].attributes.real("v"), value) << print_graph(graph);
  }
}

TEST(Text, AttributesTellZerosApart) {
  Attributes plus, minus;
  plus.set("v", 0.0);
  minus.set("v", -0.0);
  EXPECT_EQ(print_attributes(plus), "{v = 0.0}");
  EXPECT_EQ(print_attributes(minus), "{v = -0.0}");
  EXPECT_EQ(print_attributes({}), "");
}

struct Broken {
  std::string_view from, to, where, expected;
};

class TextErrors : public testing::TestWithParam<Broken> {};

TEST_P(TextErrors, NameLineAndColumn) {
  const Broken& broken = GetParam();
  const Result<Graph> graph = parse_graph(replaced(kAll, broken.from, broken.to));
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code, ErrorCode::BadInput);
  EXPECT_EQ(graph.error().fault, Fault::User);
  EXPECT_NE(graph.error().where.find(broken.where), std::string::npos) << graph.error().where;
  EXPECT_NE(graph.error().expected.find(broken.expected), std::string::npos) << graph.error().expected;
}

INSTANTIATE_TEST_SUITE_P(Each, TextErrors,
                         testing::Values(Broken{"graph \"a", "grahp \"a", "line 1 column 1", "'graph'"},
                                         Broken{"f32[B,T,64]", "f33[B,T,64]", "line 2", "element type"},
                                         Broken{"f32[B,T,64]", "f32[B,T,64", "line 2", "a dim"},
                                         Broken{"f32[B,T,64]", "f32[B,+,64]", "line 2", "a dim"},
                                         Broken{"symbols(B, T, C) {\n  input %x", "symbols(BT) {\n  input %x",
                                                "line 1", "one-letter"},
                                         Broken{"matmul(%x, %w)", "matmul(%x, %v)", "line 6", "stands above"},
                                         Broken{"matmul(%x, %w)", "matmul(%0, %w)", "line 6", "stands above"},
                                         Broken{"input %p", "input %x", "line 3", "not taken"},
                                         Broken{"a = -3", "a = three", "line 7", "a number"},
                                         Broken{"a = -3", "a = 3x", "line 7", "a number"},
                                         Broken{"a = -3", "a = 9223372036854775808", "line 7", "a number"},
                                         Broken{"ints[1, -2]", "ints[1, 2.0]", "line 7", "list's kind"},
                                         Broken{"\\x0a", "\\xzz", "line 7", "hexadecimal"},
                                         Broken{"\\x0a", "\\x0", "line 7", "hexadecimal"},
                                         Broken{"output \"y\" %9", "output \"y %9", "line", "'%'"},
                                         Broken{"update \"k\" %8\n}", "update \"k\" %8\n", "line", "'%'"},
                                         Broken{"update \"k\" %8\n}", "update \"k\" %8\n} x", "line",
                                                "end of the text"},
                                         Broken{"%7: f16", "%10000001: f16", "line", "10 million"}));

// Every prefix of a text is an error, never a crash.
TEST(Text, PrefixesAreRefused) {
  for (std::size_t length = 0; length + 2 < kAll.size(); ++length) {
    EXPECT_FALSE(parse_graph(kAll.substr(0, length)).ok()) << length;
  }
}

TEST(Text, BodiesNestToALimit) {
  std::string in = "graph \"g\" symbols() {";
  for (int i = 0; i < 20; ++i) in += " %0: f32[] = f() body \"b\" symbols() {";
  for (int i = 0; i < 21; ++i) in += " }";
  const Result<Graph> graph = parse_graph(in);
  ASSERT_FALSE(graph.ok());
  EXPECT_NE(graph.error().expected.find("8 bodies"), std::string::npos);
}

}  // namespace
}  // namespace hone::test
