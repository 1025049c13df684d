// fold-constants with the reference kernels that compute: arithmetic, shapes and indices of constants.
#include "run_graph.h"

namespace hone::test {
namespace {

std::string folded(std::string_view text, std::string* fired = nullptr) {
  Graph graph = parse(text);
  const ReferenceEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  PipelineOptions options;
  options.verify = true;
  options.observe = [&](const PassReport& report, const Graph&) -> Status {
    if (fired != nullptr) *fired = rules_to_string(report.rules);
    return {};
  };
  for (const std::string_view name : {"fold-constants", "dce"}) {
    const Result<const PassRow*> row = find_pass(name);
    const Status status = row.ok() ? run_pass(graph, **row, options, context) : Status(row.error());
    if (!status.ok()) return describe(status.error());
    options.observe = nullptr;
  }
  return print_graph(graph);
}

// The inverse frequencies of a rotary table, 2^(-2i) for i = 0..3, from primitive ops.
constexpr std::string_view kFrequencies = R"(graph "g" symbols(T) {
  input %x "x": f32[T,4]
  %i: i32[4] = iota() {axis = 0, shape = dims[4]}
  %f: f32[4] = cast(%i) {to = "f32"}
  %c: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[-2.0]}
  %w: f32[4] = broadcast(%c) {shape = dims[4]}
  %p: f32[4] = mul(%f, %w)
  %b: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[2.0]}
  %e: f32[4] = pow(%b, %p)
  %y: f32[T,4] = mul(%x, %e)
  output "y" %y
}
)";

TEST(FoldConstants, ArithmeticOnIndices) {
  std::string fired;
  EXPECT_EQ(folded(kFrequencies, &fired), R"(graph "g" symbols(T) {
  input %x "x": f32[T,4]
  %e: f32[4] = constant() {dtype = "f32", shape = dims[4], values = reals[1.0, 0.25, 0.0625, 0.015625]}
  %y: f32[T,4] = mul(%x, %e)
  output "y" %y
}
)");
  EXPECT_EQ(fired, "iota 1, cast 1, mul 1, pow 1");
}

TEST(FoldConstants, ViewsAndMovesOfConstants) {
  EXPECT_EQ(folded(R"(graph "g" symbols(T) {
  input %x "x": f32[T,2,3]
  %a: f32[6] = constant() {dtype = "f32", shape = dims[6], values = reals[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
  %r: f32[3,2] = reshape(%a) {shape = dims[3, 2]}
  %p: f32[2,3] = permute(%r) {axes = ints[1, 0]}
  %s: f32[2,1] = slice(%p) {axis = 1, range = dims[2, 3]}
  %t: f32[2,2] = slice(%p) {axis = 1, range = dims[0, 2]}
  %c: f32[2,3] = concat(%s, %t) {axis = 1}
  %y: f32[T,2,3] = add(%x, %c)
  output "y" %y
}
)"),
            R"(graph "g" symbols(T) {
  input %x "x": f32[T,2,3]
  %c: f32[2,3] = constant() {dtype = "f32", shape = dims[2, 3], values = reals[5.0, 1.0, 3.0, 6.0, 2.0, 4.0]}
  %y: f32[T,2,3] = add(%x, %c)
  output "y" %y
}
)");
}

// A mask of constant extents: [2,2] of a comparison of indices, through a view of a broadcast.
TEST(FoldConstants, ComparisonsThroughViewsOfBroadcasts) {
  EXPECT_EQ(folded(R"(graph "g" symbols(T) {
  input %x "x": f32[T,2,2]
  %i: i32[2] = iota() {axis = 0, shape = dims[2]}
  %b: i32[2,2] = broadcast(%i) {shape = dims[2, 2]}
  %t: i32[2,2] = permute(%b) {axes = ints[1, 0]}
  %m: bool[2,2] = less(%b, %t)
  %z: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.0]}
  %y: f32[T,2,2] = select(%m, %x, %z)
  output "y" %y
}
)"),
            R"(graph "g" symbols(T) {
  input %x "x": f32[T,2,2]
  %m: bool[2,2] = constant() {dtype = "bool", shape = dims[2, 2], values = reals[0.0, 0.0, 1.0, 0.0]}
  %z: f32[] = constant() {dtype = "f32", shape = dims[], values = reals[0.0]}
  %y: f32[T,2,2] = select(%m, %x, %z)
  output "y" %y
}
)");
}

TEST(FoldConstants, NotWhatASymbolDecidesNorABroadcastThatNobodyComputesWith) {
  for (const std::string_view stays : {R"(graph "g" symbols(T) {
  input %x "x": f32[T,4]
  %i: i32[T] = iota() {axis = 0, shape = dims[T]}
  %f: f32[T] = cast(%i) {to = "f32"}
  %g: f32[T,1] = reshape(%f) {shape = dims[T, 1]}
  %y: f32[T,4] = mul(%x, %g)
  output "y" %y
}
)",
                                       R"(graph "g" symbols(T) {
  input %x "x": f32[2,T]
  %c: f32[2] = constant() {dtype = "f32", shape = dims[2], values = reals[4.0, 5.0]}
  %b: f32[3,2] = broadcast(%c) {shape = dims[3, 2]}
  %p: f32[2,3] = permute(%b) {axes = ints[1, 0]}
  %q: f32[6] = reshape(%b) {shape = dims[6]}
  output "p" %p
  output "q" %q
}
)"}) {
    std::string fired;
    EXPECT_EQ(folded(stays, &fired), stays);
    EXPECT_EQ(fired, "");
  }
}

// One element more than the limit stays, wherever it would be met.
TEST(FoldConstants, NotMoreElementsThanTheLimit) {
  for (const auto& [extent, folds] : {std::pair{65536, true}, std::pair{65537, false}}) {
    const std::string n = std::to_string(extent);
    const std::string in =
        "graph \"g\" symbols(T) {\n  %i: i32[" + n + "] = iota() {axis = 0, shape = dims[" + n +
        "]}\n  %s: i32[] = reduce_max(%i) {axis = 0, keep_dims = 0}\n  output \"s\" %s\n}\n";
    std::string fired;
    const std::string out = folded(in, &fired);
    EXPECT_EQ(fired, folds ? "iota 1, reduce_max 1" : "");
    EXPECT_EQ(out == in, !folds);
  }
}

}  // namespace
}  // namespace hone::test
