// fold-constants, cse and dce.
#include <cmath>
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "pass_test.h"
#include "passes/cse.h"
#include "passes/fold_constants.h"

namespace hone::test {
namespace {

// Knows sqrt and add of f32 constants, elementwise without broadcasting.
class SmallEvaluator : public Evaluator {
 public:
  Result<std::vector<ConstantTensor>> evaluate(const Node& node, std::span<const ConstantTensor> inputs,
                                               std::span<const Type> outputs) const override {
    if (inputs.empty()) return internal_error(node.op, "no kernel");
    ConstantTensor out{outputs[0], inputs[0].values};
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      if (node.op == "sqrt") {
        out.values[i] = std::sqrt(static_cast<float>(out.values[i]));
      } else if (node.op == "add") {
        out.values[i] = static_cast<float>(out.values[i]) + static_cast<float>(inputs[1].values[i]);
      } else {
        return internal_error(node.op, "no kernel");
      }
    }
    return std::vector{out};
  }
};

const SmallEvaluator kEvaluator;

std::string folded(std::string_view in, const Evaluator* evaluator = &kEvaluator) {
  PassContext context;
  context.evaluator = evaluator;
  return after("fold-constants", in, context);
}

const std::string_view kConstants = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %0: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[4.0]}
  %1: f32[] = sqrt(%0)
  %2: f32[] = add(%1, %0)
  %3: f32[T] = mul(%x, %2)
  output "y" %3
}
)");

TEST(FoldConstants, ChainsOfConstantsAreComputed) {
  EXPECT_EQ(folded(kConstants), text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %0: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[4.0]}
  %1: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %2: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[6.0]}
  %3: f32[T] = mul(%x, %2)
  output "y" %3
}
)"));
}

TEST(FoldConstants, NothingWithoutAnEvaluator) {
  EXPECT_EQ(folded(kConstants, nullptr), kConstants);
}

TEST(FoldConstants, OpsWithoutAKernelStay) {
  const std::string in = replaced(replaced(kConstants, "sqrt", "exp"), "add(%1, %0)", "neg(%0)");
  EXPECT_EQ(folded(in), in);
}

TEST(FoldConstants, BroadcastsAndLargeResultsStay) {
  std::string in(text(R"(
graph "g" symbols(T) {
  %0: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[4.0]}
  %1: f32[4] = broadcast(%0) {shape = dims[4]}
  output "a" %1
}
)"));
  EXPECT_EQ(folded(in), in);
  for (const std::int64_t count : {kMaxFoldedElements, kMaxFoldedElements + 1}) {
    GraphBuilder build("g", "");
    const std::vector<double> values(static_cast<std::size_t>(count), 1.0);
    build.output("y", build.node("sqrt", {build.constant(DType::F32, values, {Dim(count)})}));
    Result<Graph> graph = build.finish();
    ASSERT_TRUE(graph.ok());
    PassContext context;
    context.evaluator = &kEvaluator;
    ASSERT_TRUE(fold_constants(*graph, context).ok());
    EXPECT_EQ(count_op(*graph, "sqrt"), count > kMaxFoldedElements ? 1 : 0) << count;
  }
}

TEST(Cse, EqualNodesBecomeOneWhateverTheirModule) {
  EXPECT_EQ(after("cse", text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %a: f32[T] = exp(%x) @"layers.0"
  %b: f32[T] = exp(%x) @"layers.1"
  %c: f32[T] = neg(%a)
  %d: f32[T] = neg(%b)
  %e: f32[T] = add(%c, %d)
  output "e" %e
}
)")),
            text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %a: f32[T] = exp(%x) @"layers.0"
  %c: f32[T] = neg(%a)
  %e: f32[T] = add(%c, %c)
  output "e" %e
}
)"));
}

TEST(Cse, OperandsOfACommutativeOpInAnyOrder) {
  const std::string in(text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  input %y "y": f32[T]
  %a: f32[T] = add(%x, %y)
  %b: f32[T] = add(%y, %x)
  %c: f32[T] = mul(%a, %b)
  output "c" %c
}
)"));
  EXPECT_EQ(after("cse", in), text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  input %y "y": f32[T]
  %a: f32[T] = add(%x, %y)
  %c: f32[T] = mul(%a, %a)
  output "c" %c
}
)"));
  for (const std::string_view op : {"sub", "max", "div"}) {
    const std::string other =
        replaced(replaced(in, "add(%x", std::string(op) + "(%x"), "add(%y", std::string(op) + "(%y");
    EXPECT_EQ(after("cse", other), other) << op;
  }
}

TEST(Cse, NotWithOtherAttributesOrAnotherZero) {
  const std::string_view in = text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T,T]
  %a: f32[T,1] = reduce_sum(%x) {axis = 1, keep_dims = 1}
  %b: f32[1,T] = reduce_sum(%x) {axis = 0, keep_dims = 1}
  %c: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.0]}
  %d: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-0.0]}
  output "a" %a
  output "b" %b
  output "c" %c
  output "d" %d
}
)");
  EXPECT_EQ(after("cse", in), in);
}

TEST(Cse, BodiesAreCompared) {
  const std::string in(text(R"(
graph "g" symbols(T) {
  input %x "x": f32[T]
  %a: f32[T] = fused_elementwise(%x) body "f" symbols(T) {
    input %0 "0": f32[T]
    %1: f32[T] = exp(%0)
    output "0" %1
  }
  %b: f32[T] = fused_elementwise(%x) body "f" symbols(T) {
    input %0 "0": f32[T]
    %1: f32[T] = log(%0)
    output "0" %1
  }
  output "a" %a
  output "b" %b
}
)"));
  EXPECT_EQ(after("cse", in), in);
  EXPECT_EQ(parse(after("cse", replaced(in, "log", "exp"))).nodes.size(), 1U);
}

// Not even if they are equal to the letter. The verifier would refuse such a graph: the pass must not depend
// on it.
TEST(Cse, NeverStateAppend) {
  Result<Graph> graph = parse_graph(text(R"(
graph "g" symbols(B, T, C) {
  input %r "r": f32[B,T,4]
  input %p "p": i32[B,T]
  state %s "k": f32[B,C,4]
  %a: f32[B,C,4] = state_append(%s, %r, %p)
  %b: f32[B,C,4] = state_append(%s, %r, %p)
  output "b" %b
  update "k" %a
}
)"));
  ASSERT_TRUE(graph.ok());
  ASSERT_TRUE(eliminate_common_subexpressions(*graph, {}).ok());
  EXPECT_EQ(count_op(*graph, "state_append"), 2);
}

TEST(Dce, ChainsWithoutReaderGoAndStateStays) {
  EXPECT_EQ(after("dce", text(R"(
graph "g" symbols(B, T, C) {
  input %r "r": f32[B,T,4]
  input %p "p": i32[B,T]
  input %unused "unused": f32[T]
  state %s "k": f32[B,C,4]
  %a: f32[B,C,4] = state_append(%s, %r, %p)
  %b: f32[B,C,4] = exp(%a)
  %c: f32[B,C,4] = neg(%b)
  update "k" %a
}
)")),
            text(R"(
graph "g" symbols(B, T, C) {
  input %r "r": f32[B,T,4]
  input %p "p": i32[B,T]
  input %unused "unused": f32[T]
  state %s "k": f32[B,C,4]
  %a: f32[B,C,4] = state_append(%s, %r, %p)
  update "k" %a
}
)"));
}

}  // namespace
}  // namespace hone::test
