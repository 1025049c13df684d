#include "graph/verify.h"

#include "graph_test.h"

namespace hone::test {
namespace {

const std::string_view kGood = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,4]
  input %p "p": i32[B,T]
  state %s "k": f32[B,C,4]
  %0: f32[B,C,4] = state_append(%s, %x, %p) @"layers.0"
  %1: f32[B,T,4] = fused_elementwise(%x) body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,4]
    %1: f32[B,T,4] = neg(%0)
    output "0" %1
  }
  output "y" %1
  output "z" %0
  update "k" %0
}
)");

void expect_refused(const Graph& graph, std::string_view message) {
  const Status status = verify(graph, "a test");
  ASSERT_FALSE(status.ok()) << message;
  EXPECT_EQ(status.error().fault, Fault::Hone);
  EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().where.find("after a test"), std::string::npos) << status.error().where;
}

void expect_refused(std::string_view from, std::string_view to, std::string_view message) {
  expect_refused(parse(replaced(kGood, from, to)), message);
}

TEST(Verify, AcceptsAGoodGraph) {
  EXPECT_TRUE(verify(parse(kGood), "a test").ok());
}

TEST(Verify, NamesOpModuleAndValue) {
  const Status status = verify(parse(replaced(kGood, "%0: f32[B,C,4]", "%0: f32[B,C,5]")), "a test");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().where, "graph 'g', op state_append of layers.0, value %0, after a test");
  EXPECT_EQ(status.error().expected, "f32[B,C,4]");
  EXPECT_EQ(status.error().actual, "f32[B,C,5]");
}

TEST(Verify, TypesAndOps) {
  expect_refused("%1: f32[B,T,4] = neg", "%1: f64[B,T,4] = neg", "another type");
  expect_refused("neg(%0)", "negg(%0)", "no op has this name");
  expect_refused("neg(%0)", "add(%0)", "wrong number of inputs");
  expect_refused("symbols(B, T, C) {\n  input %x", "symbols(B, T) {\n  input %x", "does not declare");
  expect_refused("input %p \"p\": i32[B,T]", "input %p \"p\": i32[0,T]", "at least 1");
  expect_refused("input %0 \"0\": f32[B,T,4]\n    %1: f32[B,T,4]",
                 "input %0 \"0\": f32[B,T,5]\n    %1: f32[B,T,5]", "differs from the body's");
}

TEST(Verify, RoutingTypes) {
  const std::string_view good = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,1,64]
  input %h "h": f32[T,2,64]
  input %s "s": f32[T,6]
  weight %w "w": q8_0[6,10,64]
  %0: i32[T,2] = top_k(%s) {k = 2}
  %1: f32[T,2] = take_along_axis(%s, %0) {axis = -1}
  %2: f32[T,2,10] = expert_matmul(%x, %w, %0)
  %3: f32[T,2,10] = expert_matmul(%h, %w, %0)
  output "a" %1
  output "b" %2
  output "c" %3
}
)");
  EXPECT_TRUE(verify(parse(good), "a test").ok());
  const auto refused = [&](std::string_view from, std::string_view to, std::string_view message) {
    expect_refused(parse(replaced(good, from, to)), message);
  };
  refused("{k = 2}", "{k = 0}", "`k` within");
  refused("{k = 2}", "{k = 7}", "`k` within");
  refused("%0: i32[T,2] = top_k(%s)", "%0: i32[T,2] = top_k(%w)", "real numbers");
  refused("take_along_axis(%s, %0) {axis = -1}", "take_along_axis(%s, %0) {axis = 0}", "the other axes");
  refused("take_along_axis(%s, %0)", "take_along_axis(%s, %s)", "i32");
  refused("take_along_axis(%s, %0)", "take_along_axis(%x, %0)", "the rank of x");
  refused("expert_matmul(%x, %w, %0)", "expert_matmul(%x, %s, %0)", "one matrix per expert");
  refused("expert_matmul(%x, %w, %0)", "expert_matmul(%w, %w, %0)", "not block-quantised");
  refused("expert_matmul(%x, %w, %0)", "expert_matmul(%x, %w, %1)", "numbers of the experts");
  refused("input %h \"h\": f32[T,2,64]", "input %h \"h\": f32[T,3,64]", "must agree");
  refused("input %h \"h\": f32[T,2,64]", "input %h \"h\": f32[T,2,32]", "inner dims");
  refused("expert_matmul(%h, %w, %0)", "expert_matmul(%s, %w, %0)", "beside experts");
}

TEST(Verify, Names) {
  expect_refused("input %p \"p\"", "input %p \"x\"", "two inputs have one name");
  expect_refused("output \"z\"", "output \"y\"", "two outputs have one name");
}

TEST(Verify, States) {
  expect_refused("  update \"k\" %0\n", "", "no update");
  expect_refused("update \"k\" %0", "update \"k\" %1", "one append");
  expect_refused("update \"k\" %0", "update \"p\" %0", "names no state");
  expect_refused("update \"k\" %0", "update \"k\" %0\n  update \"k\" %0", "updated twice");
  expect_refused("output \"z\" %0", "%9: f32[B,C,4] = neg(%s)\n  output \"z\" %9", "only by its one append");
  expect_refused("%0: f32[B,C,4] = state_append(%s, %x, %p)", "%0: f32[B,C,4] = copy(%s)",
                 "only by its one append");
}

// A fused node may append to a state, as its one reader, once, and read nothing else of it.
TEST(Verify, StatesOfFusedNodes) {
  const std::string_view append = "%0: f32[B,C,4] = state_append(%s, %x, %p) @\"layers.0\"\n";
  const std::string fused = replaced(kGood, append, text(R"(
%0: f32[B,C,4] = fused_elementwise(%x, %s, %p) body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,4]
    input %1 "1": f32[B,C,4]
    input %2 "2": i32[B,T]
    %3: f32[B,T,4] = neg(%0)
    %4: f32[B,C,4] = state_append(%1, %3, %2)
    output "0" %4
  }
)"));
  EXPECT_TRUE(verify(parse(fused), "a test").ok());
  const auto refused = [&](std::string_view from, std::string_view to) {
    expect_refused(parse(replaced(fused, from, to)), "only by its one append");
  };
  refused("%4: f32[B,C,4] = state_append(%1, %3, %2)", "%4: f32[B,C,4] = neg(%1)");
  // Once more, behind the first append and beside it; read in the body beside it.
  refused("    output \"0\" %4", "    %5: f32[B,C,4] = state_append(%4, %0, %2)\n    output \"0\" %5");
  refused("    output \"0\" %4", "    %5: f32[B,C,4] = state_append(%1, %0, %2)\n    output \"0\" %4");
  refused("    output \"0\" %4", "    %5: f32[B,C,4] = neg(%1)\n    output \"0\" %4");
  std::string two = replaced(fused, "    output \"0\" %4\n",
                             "    %5: f32[B,C,4] = state_append(%1, %0, %2)\n    output \"0\" %4\n"
                             "    output \"1\" %5\n");
  two = replaced(two, "%0: f32[B,C,4] = fused", "%0: f32[B,C,4], %7: f32[B,C,4] = fused");
  expect_refused(parse(two), "only by its one append");
  // By two nodes, each of which appends.
  refused("  output \"z\" %0", "  %9: f32[B,C,4] = state_append(%s, %x, %p)\n  output \"z\" %9");
  // The update is the state of before, or another result.
  refused("  update \"k\" %0", "  update \"k\" %1");
}

TEST(Verify, ReshapeOfBlocks) {
  const std::string_view good = text(R"(
graph "g" symbols(B, T) {
  input %x "x": f32[B,T,2,64]
  weight %w "w": q8_0[4,64]
  %q: q8a[B,T,2,64] = quantize_q8a(%x)
  %0: q8a[B,T,4,32] = reshape(%q) {shape = dims[B, T, 4, 32]}
  %1: q8a[B*T,128] = reshape(%q) {shape = dims[B*T, 128]}
  output "0" %0
  output "1" %1
}
)");
  EXPECT_TRUE(verify(parse(good), "a test").ok());
  const auto refused = [&](std::string_view from, std::string_view to, std::string_view message) {
    expect_refused(parse(replaced(good, from, to)), message);
  };
  // Rows of half a block, of three halves, and of a length that is not known.
  refused("q8a[B,T,4,32] = reshape(%q) {shape = dims[B, T, 4, 32]}",
          "q8a[B,T,8,16] = reshape(%q) {shape = dims[B, T, 8, 16]}", "block-quantised");
  refused("q8a[B*T,128] = reshape(%q) {shape = dims[B*T, 128]}",
          "q8a[128,B*T] = reshape(%q) {shape = dims[128, B*T]}", "block-quantised");
  refused("q8a[B*T,128] = reshape(%q) {shape = dims[B*T, 128]}",
          "q8a[B*T,64] = reshape(%q) {shape = dims[B*T, 64]}", "number of elements");
  // Blocks of weights stay as they are.
  const std::string weights =
      replaced(good, "  output \"0\"",
               "  %2: q8_0[8,32] = reshape(%w) {shape = dims[8, 32]}\n  output \"2\" %2\n  output \"0\"");
  expect_refused(parse(weights), "block-quantised");
}

TEST(Verify, QuantisationInTerms) {
  const std::string_view good = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,64]
  %0: q8a[T,2,64] = quantize_q8a(%x) {terms = 2}
  %1: q8a[T,64] = quantize_q8a(%x) {terms = 1}
  output "0" %0
  output "1" %1
}
)");
  EXPECT_TRUE(verify(parse(good), "a test").ok());
  expect_refused(parse(replaced(good, "terms = 2", "terms = 3")), "one term or two");
  expect_refused(parse(replaced(good, "terms = 2", "terms = 1")), "another type");
  expect_refused(parse(replaced(good, "\"x\": f32[T,64]", "\"x\": f32[T,48]")), "whole blocks");
}

TEST(Verify, BrokenIds) {
  const auto broken = [](auto change) {
    Graph graph = parse(kGood);
    change(graph);
    return graph;
  };
  expect_refused(broken([](Graph& g) { g.nodes[0].inputs[1] = 999; }), "names no value");
  expect_refused(broken([](Graph& g) { g.nodes[0].inputs[1] = -1; }), "names no value");
  expect_refused(broken([](Graph& g) { g.nodes[1].outputs[0] = 999; }), "names no value");
  expect_refused(broken([](Graph& g) { g.nodes[1].outputs[0] = g.nodes[0].outputs[0]; }), "written twice");
  expect_refused(broken([](Graph& g) { g.outputs[0].value = 999; }), "never written");
  expect_refused(broken([](Graph& g) { g.state_updates[0].value = 999; }), "names no value");
  expect_refused(broken([](Graph& g) { g.inputs[0].value = -1; }), "names no value");
  expect_refused(broken([](Graph& g) { g.inputs[1].value = g.inputs[0].value; }), "are one value");
  expect_refused(broken([](Graph& g) { std::swap(g.nodes[1].inputs[0], g.nodes[1].outputs[0]); }),
                 "before it is written");
  expect_refused(broken([](Graph& g) { g.nodes[1].body = nullptr; }), "carries a body");
}

}  // namespace
}  // namespace hone::test
