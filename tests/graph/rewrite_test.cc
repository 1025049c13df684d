#include "graph/rewrite.h"

#include "graph/op_row.h"
#include "graph/verify.h"
#include "graph_test.h"

namespace hone::test {
namespace {

const std::string_view kChain = text(R"(
graph "g" symbols(T) {
  input %0 "x": f32[T,4]
  %1: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %2: f32[1,1] = reshape(%1) {shape = dims[1, 1]}
  %3: f32[T,4] = exp(%0)
  %4: f32[T,4] = mul(%3, %2) @"m"
  %5: f32[T,4] = neg(%4)
  output "y" %5
}
)");

TEST(Rewrite, ScalarConstantsThroughViews) {
  const Graph graph = parse(kChain);
  const UseMap uses(graph);
  ASSERT_NE(scalar_constant(graph, uses, 1), nullptr);
  EXPECT_EQ(*scalar_constant(graph, uses, 2), 2.0);
  EXPECT_EQ(scalar_constant(graph, uses, 3), nullptr);
  EXPECT_EQ(scalar_constant(graph, uses, 0), nullptr);
}

TEST(Rewrite, UsesAndProducers) {
  const Graph graph = parse(kChain);
  const UseMap uses(graph);
  EXPECT_EQ(producer_if(graph, uses, 3, "exp"), &graph.nodes[2]);
  EXPECT_EQ(producer_if(graph, uses, 3, "neg"), nullptr);
  EXPECT_EQ(producer_if(graph, uses, 0, "exp"), nullptr);
  EXPECT_TRUE(uses.only_used_by(3, 3));
  EXPECT_FALSE(uses.only_used_by(5, 4));  // an output
  EXPECT_TRUE(uses.escapes[5]);
}

TEST(Rewrite, OutlineKeepsWhatTheNodesSaid) {
  Graph graph = parse(kChain);
  const UseMap uses(graph);
  const std::vector<int> nodes{3, 2};
  const ValueId outputs[] = {4};
  EXPECT_TRUE(only_outputs_escape(graph, uses, nodes, outputs));
  Result<Node> fused =
      fused_node(graph, uses, {nodes, {0}, {4}, "fused_elementwise", {{"a", std::int64_t{1}}}});
  ASSERT_TRUE(fused.ok());
  put_in_place(graph, nodes, std::move(fused).value());
  sweep(graph);
  remove_dead_nodes(graph);
  EXPECT_TRUE(verify(graph, "outlining").ok());
  EXPECT_EQ(print_graph(graph), text(R"(
graph "g" symbols(T) {
  input %0 "x": f32[T,4]
  %4: f32[T,4] = fused_elementwise(%0) {a = 1} @"m" body "fused_elementwise" symbols(T) {
    input %0 "0": f32[T,4]
    %1: f32[T,4] = exp(%0)
    %2: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
    %3: f32[1,1] = reshape(%2) {shape = dims[1, 1]}
    %4: f32[T,4] = mul(%1, %3)
    output "0" %4
  }
  %5: f32[T,4] = neg(%4)
  output "y" %5
}
)"));
}

// The nodes of a fused node's body come into the body of the next, with its inputs and all its outputs.
TEST(Rewrite, OutlineTakesABodyApart) {
  const Graph graph = parse(text(R"(
graph "g" symbols(T) {
  input %0 "x": f32[T,4]
  input %1 "y": f32[T,4]
  %2: f32[T,4], %3: f32[T,4] = fused_elementwise(%1, %0) body "f" symbols(T) {
    input %0 "0": f32[T,4]
    input %1 "1": f32[T,4]
    %2: f32[T,4] = sub(%0, %1)
    %3: f32[T,4] = exp(%2)
    output "0" %3
    output "1" %2
  }
  %4: f32[T,4] = div(%2, %3)
  output "y" %4
}
)"));
  const UseMap uses(graph);
  const auto body_of = [&](std::string_view flatten) {
    Graph made = graph;
    const std::vector<int> nodes{0, 1};
    Result<Node> fused = fused_node(graph, uses, {nodes, {0, 1}, {4}, "fused_elementwise", {}, flatten});
    EXPECT_TRUE(fused.ok());
    put_in_place(made, nodes, std::move(fused).value());
    sweep(made);
    EXPECT_TRUE(verify(made, "outlining").ok());
    return print_graph(*made.nodes[0].body);
  };
  EXPECT_EQ(body_of("fused_elementwise"), text(R"(
graph "fused_elementwise" symbols(T) {
  input %0 "0": f32[T,4]
  input %1 "1": f32[T,4]
  %2: f32[T,4] = sub(%1, %0)
  %3: f32[T,4] = exp(%2)
  %4: f32[T,4] = div(%3, %2)
  output "0" %4
}
)"));
  EXPECT_NE(body_of("swiglu_mlp").find("fused_elementwise(%1, %0)"), std::string::npos);
}

TEST(Rewrite, AFusedNodeStandsWhereItIsPut) {
  Graph graph = parse(kChain);
  const auto named = [](std::string op) {
    Node node;
    node.op = std::move(op);
    return node;
  };
  put_at(graph, std::vector<int>{0, 2, 4}, 2, named("a"));
  sweep(graph);
  std::string order;
  for (const Node& node : graph.nodes) order += node.op + ' ';
  EXPECT_EQ(order, "reshape a mul ");
}

// Of a node with a body the appends in it say what memory its outputs share.
TEST(Rewrite, OutputsOfFusedNodesThatAreStates) {
  const Graph graph = parse(text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,4]
  input %p "p": i32[B,T]
  state %k "k": f32[B,C,4]
  state %v "v": f32[B,C,4]
  %0: f32[B,T,4], %1: f32[B,C,4], %2: f32[B,C,4], %3: f32[B,T,2,2] = projection(%x, %v, %p, %k) body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,4]
    input %1 "1": f32[B,C,4]
    input %2 "2": i32[B,T]
    input %3 "3": f32[B,C,4]
    %4: f32[B,T,4] = neg(%0)
    %5: f32[B,C,4] = state_append(%3, %4, %2)
    %6: f32[B,C,4] = fused_elementwise(%0, %2, %1) body "g" symbols(B, T, C) {
      input %0 "0": f32[B,T,4]
      input %1 "1": i32[B,T]
      input %2 "2": f32[B,C,4]
      %3: f32[B,C,4] = state_append(%2, %0, %1)
      output "0" %3
    }
    %7: f32[B,T,2,2] = reshape(%4) {shape = dims[B, T, 2, 2]}
    output "0" %4
    output "1" %5
    output "2" %6
    output "3" %7
  }
  %8: f32[B,T,2,2] = reshape(%0) {shape = dims[B, T, 2, 2]}
  output "y" %8
  update "k" %1
  update "v" %2
}
)"));
  const Node& node = graph.nodes[0];
  EXPECT_EQ(aliased_input(node, 0), -1);
  EXPECT_EQ(aliased_input(node, 1), 3);
  EXPECT_EQ(aliased_input(node, 2), 1);
  EXPECT_EQ(aliased_input(node, 3), -1);
  EXPECT_EQ(aliased_input(node, 4), -1);
  EXPECT_EQ(aliased_input(graph.nodes[1], 0), 0);
  EXPECT_EQ(aliased_input(graph.nodes[1], 1), -1);
}

TEST(Rewrite, AValueReadOutsideMustBeAnOutput) {
  const Graph graph = parse(replaced(kChain, "output \"y\" %5", "output \"y\" %5\n  output \"e\" %3"));
  const UseMap uses(graph);
  const std::vector<int> nodes{2, 3};
  const ValueId outputs[] = {4};
  EXPECT_FALSE(only_outputs_escape(graph, uses, nodes, outputs));
  const std::vector<int> all_but_last{2};
  EXPECT_FALSE(only_outputs_escape(graph, uses, all_but_last, {}));
}

TEST(Rewrite, OutlineReportsAForgottenInput) {
  Graph graph = parse(replaced(kChain, "exp(%0)", "reduce_sum(%0) {axis = 0, keep_dims = 1}"));
  const UseMap uses(graph);
  const Result<Node> fused = fused_node(graph, uses, {{3}, {}, {4}, "f", {}});
  ASSERT_FALSE(fused.ok());
  EXPECT_EQ(fused.error().fault, Fault::Hone);
  EXPECT_FALSE(fused_node(graph, uses, {{}, {}, {}, "f", {}}).ok());
  EXPECT_FALSE(fused_node(graph, uses, {{3}, {3}, {5}, "f", {}}).ok());
}

TEST(Rewrite, InsertBeforeKeepsTheOrder) {
  Graph graph = parse(kChain);
  const auto named = [](std::string op) {
    Node node;
    node.op = std::move(op);
    return node;
  };
  insert_before(graph, {{5, named("e")}, {0, named("a")}, {2, named("b")}, {2, named("c")}});
  std::string order;
  for (const Node& node : graph.nodes) order += node.op + ' ';
  EXPECT_EQ(order, "a constant reshape b c exp mul neg e ");
}

TEST(Rewrite, ReplaceUsesReachesOutputs) {
  Graph graph = parse(kChain);
  replace_uses(graph, 5, 3);
  replace_uses(graph, 0, 3);
  EXPECT_EQ(graph.outputs[0].value, 3);
  EXPECT_EQ(graph.nodes[2].inputs[0], 3);
}

}  // namespace
}  // namespace hone::test
