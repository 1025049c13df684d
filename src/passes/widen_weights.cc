#include "passes/widen_weights.h"

#include <algorithm>

#include "graph/rewrite.h"

namespace hone {
namespace {

bool is_narrow_vector(const Type& type) {
  return type.shape.size() == 1 && (type.dtype == DType::F16 || type.dtype == DType::BF16);
}

}  // namespace

Status widen_weights(Graph& graph, const PassContext& context) {
  const UseMap uses(graph);
  for (GraphInput& input : graph.inputs) {
    const auto v = static_cast<std::size_t>(input.value);
    const std::vector<int>& users = uses.users[v];
    if (input.kind != InputKind::Weight || !is_narrow_vector(graph.type(input.value))) continue;
    if (users.empty() || uses.escapes[v]) continue;
    const auto widens = [&](int user) {
      const Node& node = graph.nodes[static_cast<std::size_t>(user)];
      return node.op == "cast" && graph.type(node.outputs[0]).dtype == DType::F32 &&
             !uses.escapes[static_cast<std::size_t>(node.outputs[0])];
    };
    if (!std::all_of(users.begin(), users.end(), widens)) continue;
    context.fired(dtype_name(graph.type(input.value).dtype));
    // The first cast's result is the weight from now on, and stands for those of the others.
    input.value = graph.nodes[static_cast<std::size_t>(users[0])].outputs[0];
    for (const int user : users) {
      replace_uses(graph, graph.nodes[static_cast<std::size_t>(user)].outputs[0], input.value);
      graph.nodes[static_cast<std::size_t>(user)] = Node{};
    }
  }
  sweep(graph);
  return {};
}

}  // namespace hone
