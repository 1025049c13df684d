#include "passes/fuse_mlp.h"

#include <algorithm>

#include "passes/activation.h"
#include "passes/match.h"

namespace hone {
namespace {

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

// kActivation(x Wg^T) * (x Wu^T).
template <Activation kActivation>
std::optional<Match> match_mlp_at(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "mul") return std::nullopt;
  for (const auto& [activated, up_value] : both_orders(last)) {
    Pattern pattern(graph, uses);
    pattern.take(last.outputs[0], "mul");
    const std::optional<ValueId> gate_value = kActivation(pattern, activated);
    if (!gate_value) continue;
    const Node* gate = pattern.take(*gate_value, "matmul");
    const Node* up = pattern.take(up_value, "matmul");
    if (!are_projections(graph, gate, up)) continue;
    return Match{pattern.nodes(), {gate->inputs[0], gate->inputs[1], up->inputs[1]}, last.outputs[0], {}};
  }
  return std::nullopt;
}

}  // namespace

Status fuse_mlp(Graph& graph, const PassContext& context) {
  HONE_TRY(fuse_matches(graph, "swiglu_mlp", match_mlp_at<match_silu>, context));
  return fuse_matches(graph, "geglu_mlp", match_mlp_at<match_gelu>, context);
}

}  // namespace hone
