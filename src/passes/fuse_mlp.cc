#include "passes/fuse_mlp.h"

#include <algorithm>

#include "passes/match.h"

namespace hone {
namespace {

// True if `value` is 1 + exp(-gate).
bool is_one_plus_exp_of_minus(Pattern& pattern, ValueId value, ValueId gate) {
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return false;
  for (const auto& [exponential, one] : both_orders(*sum)) {
    if (!pattern.is_scalar(one, 1)) continue;
    const Node* exp = pattern.take(exponential, "exp");
    const Node* minus = exp == nullptr ? nullptr : pattern.take(exp->inputs[0], "neg");
    return minus != nullptr && minus->inputs[0] == gate;
  }
  return false;
}

// The z of silu(z) = z / (1 + exp(-z)) = z * (1 / (1 + exp(-z))).
std::optional<ValueId> match_silu(Pattern& pattern, ValueId value) {
  if (const Node* quotient = pattern.take(value, "div")) {
    const ValueId z = quotient->inputs[0];
    return is_one_plus_exp_of_minus(pattern, quotient->inputs[1], z) ? std::optional(z) : std::nullopt;
  }
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return std::nullopt;
  for (const auto& [z, sigmoid] : both_orders(*product)) {
    Pattern attempt = pattern;
    const Node* quotient = attempt.take(sigmoid, "div");
    if (quotient == nullptr || !attempt.is_scalar(quotient->inputs[0], 1)) continue;
    if (!is_one_plus_exp_of_minus(attempt, quotient->inputs[1], z)) continue;
    pattern = attempt;
    return z;
  }
  return std::nullopt;
}

bool is_weight(const Graph& graph, ValueId value) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const GraphInput& input) {
    return input.value == value && input.kind == InputKind::Weight;
  });
}

// x Wg^T and x Wu^T, by weights of one type [F,D].
bool are_projections(const Graph& graph, const Node* gate, const Node* up) {
  if (gate == nullptr || up == nullptr || gate == up || gate->inputs[0] != up->inputs[0]) return false;
  if (gate->attributes.integer("transpose_b") == 0 || up->attributes.integer("transpose_b") == 0)
    return false;
  if (graph.type(gate->inputs[0]).dtype != DType::F32) return false;
  const Type& weight = graph.type(gate->inputs[1]);
  return weight.shape.size() == 2 && weight == graph.type(up->inputs[1]) &&
         is_weight(graph, gate->inputs[1]) && is_weight(graph, up->inputs[1]);
}

std::optional<Match> match(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "mul") return std::nullopt;
  for (const auto& [silu, up_value] : both_orders(last)) {
    Pattern pattern(graph, uses);
    pattern.take(last.outputs[0], "mul");
    const std::optional<ValueId> gate_value = match_silu(pattern, silu);
    if (!gate_value) continue;
    const Node* gate = pattern.take(*gate_value, "matmul");
    const Node* up = pattern.take(up_value, "matmul");
    if (!are_projections(graph, gate, up)) continue;
    return Match{pattern.nodes(), {gate->inputs[0], gate->inputs[1], up->inputs[1]}, last.outputs[0], {}};
  }
  return std::nullopt;
}

}  // namespace

Status fuse_mlp(Graph& graph, const PassContext&) {
  return fuse_matches(graph, "swiglu_mlp", match);
}

}  // namespace hone
