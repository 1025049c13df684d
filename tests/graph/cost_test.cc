#include "graph/cost.h"

#include "graph_test.h"

namespace hone::test {
namespace {

const std::string_view kGraph = text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %p "p": i32[B,T]
  weight %w "w": q4_1[128,64]
  weight %e "e": q8_0[1000,64]
  state %s "k": f16[B,C,64]
  %0: f32[B,T,128] = matmul(%x, %w) {transpose_b = 1}
  %1: f32[B,T,64] = gather(%e, %p)
  %2: f16[B,T,64] = cast(%x) {to = "f16"}
  %3: f16[B,C,64] = state_append(%s, %2, %p)
  %4: f32[128*B*T] = reshape(%0) {shape = dims[128*B*T]}
  %5: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[1.0]}
  %6: f32[B,T,128] = fused_elementwise(%0) body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,128]
    %1: f32[B,T,128] = neg(%0)
    %2: f32[B,T,128] = exp(%1)
    output "0" %2
  }
  output "a" %1
  output "b" %4
  output "c" %5
  output "d" %6
  update "k" %3
}
)");

struct Cost {
  std::size_t node;
  bool launch;
  std::string_view bytes, operations;
};

// By hand: a row of 64 q4_1 is 2 blocks of 20 bytes, of q8_0 2 of 34.
TEST(Cost, BytesAndOperationsByHand) {
  const Graph graph = parse(kGraph);
  const Cost costs[] = {
      {0, true, "768*B*T + 5120", "16384*B*T"},  // 256 in, 512 out per token; 128 rows of 40 bytes
      {1, true, "328*B*T", "0"},                 // 68 of the row, 4 of the id, 256 out
      {2, true, "384*B*T", "64*B*T"},
      {3, true, "260*B*T",
       "0"},  // 128 in and 128 out per token and 4 of the position; the state is not copied
      {4, false, "0", "0"},
      {5, false, "0", "0"},
      {6, true, "1024*B*T", "256*B*T"},
  };
  for (const Cost& cost : costs) {
    const Node& node = graph.nodes[cost.node];
    EXPECT_EQ(is_launch(node), cost.launch) << node.op;
    EXPECT_EQ(bytes_moved(graph, node).to_string(), cost.bytes) << node.op;
    EXPECT_EQ(operations(graph, node).to_string(), cost.operations) << node.op;
  }
}

// A product with an append in its node: x, the matrix, the positions and the appended rows are moved; the
// state is not.
TEST(Cost, OfAFusedNodeThatAppends) {
  const Graph graph = parse(text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[B,T,64]
  input %p "p": i32[B,T]
  weight %w "w": q4_1[32,64]
  state %k "k": f16[B,C,32]
  %0: f16[B,C,32], %1: f32[B,T,32] = projection(%x, %w, %k, %p) body "f" symbols(B, T, C) {
    input %0 "0": f32[B,T,64]
    input %1 "1": q4_1[32,64]
    input %2 "2": f16[B,C,32]
    input %3 "3": i32[B,T]
    %4: f32[B,T,32] = matmul(%0, %1) {transpose_b = 1}
    %5: f16[B,T,32] = cast(%4) {to = "f16"}
    %6: f16[B,C,32] = state_append(%2, %5, %3)
    output "0" %6
    output "1" %4
  }
  output "y" %1
  update "k" %0
}
)"));
  // Of a token: 256 bytes of x, 4 of the position, 64 appended, 128 of y. The matrix: 32 rows of 40 bytes.
  EXPECT_EQ(bytes_moved(graph, graph.nodes[0]).to_string(), "452*B*T + 1280");
}

// Experts: no more bytes than all matrices, no more matrices than rows.
TEST(Cost, OnlyTheChosenExpertsAreRead) {
  const Graph graph = parse(text(R"(
graph "g" symbols(B, T, C) {
  input %x "x": f32[T,1,64]
  input %p "p": i32[T,2]
  input %s "s": f32[T,6]
  weight %w "w": q8_0[6,10,64]
  %0: f32[T,2,10] = expert_matmul(%x, %w, %p)
  %1: i32[T,2] = top_k(%s) {k = 2}
  %2: f32[T,2] = take_along_axis(%s, %1) {axis = -1}
  output "a" %0
  output "b" %2
}
)"));
  const auto bytes = [&](std::size_t node, std::int64_t tokens) {
    return *bytes_moved(graph, graph.nodes[node]).evaluate({{'T', tokens}});
  };
  // A matrix is 10 rows of 68 bytes; x 256 bytes, p 8 and the result 80 a token.
  EXPECT_EQ(bytes(0, 1), 2 * 680 + 344);
  EXPECT_EQ(bytes(0, 3), 6 * 680 + 3 * 344);
  EXPECT_EQ(bytes(0, 50), 6 * 680 + 50 * 344);
  EXPECT_EQ(operations(graph, graph.nodes[0]).to_string(), "2560*T");
  EXPECT_EQ(bytes(1, 3), 3 * 32);
  EXPECT_EQ(bytes(2, 3), 3 * 24);
}

}  // namespace
}  // namespace hone::test
