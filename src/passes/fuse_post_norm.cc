#include "passes/fuse_post_norm.h"

#include "passes/match.h"

namespace hone {
namespace {

struct PostNorm {
  int norm = -1;
  int sum = -1;
  int next = -1;  // -1: nothing norms the sum
  ValueId residual = -1;
};

const Node& at(const Graph& graph, int index) {
  return graph.nodes[static_cast<std::size_t>(index)];
}

// The norm of the sum, if it can run where the sum does.
int norm_of_sum(const Graph& graph, const UseMap& uses, int sum) {
  const ValueId y = at(graph, sum).outputs[0];
  for (const int user : uses.users[static_cast<std::size_t>(y)]) {
    const Node& node = at(graph, user);
    if (node.op == "rms_norm" && node.inputs[0] == y &&
        uses.producer[static_cast<std::size_t>(node.inputs[1])] < sum)
      return user;
  }
  return -1;
}

std::optional<PostNorm> match_post_norm(const Graph& graph, const UseMap& uses, int index) {
  const Node& sum = at(graph, index);
  if (sum.op != "add") return std::nullopt;
  const Type& type = graph.type(sum.outputs[0]);
  for (const auto& [residual, normed] : both_orders(sum)) {
    const Node* norm = producer_if(graph, uses, normed, "rms_norm");
    if (norm == nullptr || !uses.only_used_by(normed, index) || residual == normed) continue;
    if (type.dtype != DType::F32 || !(graph.type(residual) == type) || !(graph.type(normed) == type))
      continue;
    if (residual == norm->inputs[0] || residual == norm->inputs[1]) continue;
    return PostNorm{uses.producer[static_cast<std::size_t>(normed)], index, norm_of_sum(graph, uses, index),
                    residual};
  }
  return std::nullopt;
}

Result<Node> fused(const Graph& graph, const UseMap& uses, const PostNorm& match) {
  const Node& norm = at(graph, match.norm);
  Outline outline{{match.norm, match.sum},
                  {norm.inputs[0], norm.inputs[1], match.residual},
                  at(graph, match.sum).outputs,
                  "norm_add",
                  norm.attributes};
  if (match.next >= 0) {
    const Node& next = at(graph, match.next);
    outline.nodes.push_back(match.next);
    outline.inputs.push_back(next.inputs[1]);
    outline.outputs.push_back(next.outputs[0]);
    outline.attributes.set("next_eps", next.attributes.real("eps"));
    if (const double offset = next.attributes.real("offset"); offset != 0)
      outline.attributes.set("next_offset", offset);
  }
  Node node = HONE_TRY(fused_node(graph, uses, outline));
  node.module = at(graph, match.sum).module;
  return node;
}

}  // namespace

Status fuse_post_norm(Graph& graph, const PassContext& context) {
  const UseMap uses(graph);
  std::vector<std::pair<PostNorm, Node>> made;
  std::vector<bool> taken(graph.nodes.size(), false);
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    std::optional<PostNorm> match = match_post_norm(graph, uses, n);
    if (!match || taken[static_cast<std::size_t>(match->norm)]) continue;
    if (match->next >= 0) taken[static_cast<std::size_t>(match->next)] = true;
    Node node = HONE_TRY(fused(graph, uses, *match));
    made.emplace_back(*match, std::move(node));
  }
  for (auto& [match, node] : made) {
    context.fired(match.next < 0 ? "norm-and-sum" : "norm-sum-and-norm");
    std::vector<int> nodes{match.norm, match.sum};
    if (match.next >= 0) nodes.push_back(match.next);
    put_at(graph, nodes, match.sum, std::move(node));
  }
  if (!made.empty()) sweep(graph);
  return {};
}

}  // namespace hone
