#include "passes/fuse_softmax.h"

namespace hone {
namespace {

std::optional<ValueId> match_spelled_out(Pattern& pattern, ValueId value) {
  const Graph& graph = pattern.graph();
  const Node* quotient = pattern.take(value, "div");
  if (quotient == nullptr || pattern.type(value).dtype != DType::F32) return std::nullopt;
  const ValueId exponential = quotient->inputs[0];
  const Node* sum = pattern.take(quotient->inputs[1], "reduce_sum");
  if (sum == nullptr || !reduces_last_axis(graph, *sum) || sum->inputs[0] != exponential) return std::nullopt;
  const Node* exp = pattern.take(exponential, "exp");
  const Node* shifted = exp == nullptr ? nullptr : pattern.take(exp->inputs[0], "sub");
  const Node* maximum = shifted == nullptr ? nullptr : pattern.take(shifted->inputs[1], "reduce_max");
  if (maximum == nullptr || !reduces_last_axis(graph, *maximum)) return std::nullopt;
  if (maximum->inputs[0] != shifted->inputs[0]) return std::nullopt;
  return shifted->inputs[0];
}

std::optional<Match> match_softmax_at(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "div") return std::nullopt;
  Pattern pattern(graph, uses);
  const std::optional<ValueId> x = match_spelled_out(pattern, last.outputs[0]);
  if (!x) return std::nullopt;
  return Match{pattern.nodes(), {*x}, last.outputs[0], {}};
}

}  // namespace

std::optional<ValueId> match_softmax(Pattern& pattern, ValueId value) {
  if (const Node* fused = pattern.take(value, "softmax")) return fused->inputs[0];
  return match_spelled_out(pattern, value);
}

Status fuse_softmax(Graph& graph, const PassContext& context) {
  return fuse_matches(graph, "softmax", match_softmax_at, context);
}

}  // namespace hone
