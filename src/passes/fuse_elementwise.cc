#include "passes/fuse_elementwise.h"

#include <algorithm>

#include "graph/op_row.h"
#include "passes/match.h"

namespace hone {
namespace {

bool is_register_type(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::I32 || dtype == DType::I64 ||
         dtype == DType::Bool;
}

// True if the node gives the same bits as an instruction of a strip program: arithmetic on register types;
// casts also from the other types but blocks, which a load widens exactly.
bool may_run_inside(const Graph& graph, const UseMap& uses, const Node& node) {
  const OpRow* row = find_op(node.op);
  if (row == nullptr || row->op_class != OpClass::Elementwise || node.outputs.size() != 1) return false;
  if (!is_register_type(graph.type(node.outputs[0]).dtype)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    const DType dtype = graph.type(input).dtype;
    if (is_register_type(dtype)) return true;
    return node.op == "cast" && !dtype_row(dtype).is_quantised &&
           producer_if(graph, uses, input, "constant") == nullptr;
  });
}

// As the last node of a cluster a cast may also narrow: the store rounds.
bool may_be_last(const Graph& graph, const UseMap& uses, const Node& node) {
  if (may_run_inside(graph, uses, node)) return true;
  return node.op == "cast" && is_register_type(graph.type(node.inputs[0]).dtype);
}

class Cluster {
 public:
  Cluster(const Graph& graph, const UseMap& uses, int root)
      : graph_(graph), uses_(uses), nodes_{root}, shape_(graph.type(output_of(root)).shape) {}

  // Absorbs producers until none fits.
  void grow() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      // A producer may be blocked by a user that joins later: then its other user meets it again.
      for (const ValueId input : node(nodes_[i]).inputs) try_absorb(input);
    }
  }

  std::size_t size() const { return nodes_.size(); }

  Match match() const { return Match{nodes_, inputs(nodes_), output_of(nodes_.front()), {}}; }

 private:
  const Node& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  ValueId output_of(int index) const { return node(index).outputs[0]; }
  bool holds(int index) const { return std::find(nodes_.begin(), nodes_.end(), index) != nodes_.end(); }

  // Constants of one element are part of the body.
  bool is_scalar_constant(ValueId value) const {
    return producer_if(graph_, uses_, value, "constant") != nullptr &&
           scalar_constant(graph_, uses_, value) != nullptr;
  }

  void try_absorb(ValueId value) {
    const auto v = static_cast<std::size_t>(value);
    const int index = uses_.producer[v];
    if (index < 0 || holds(index) || nodes_.size() >= kMaxClusterNodes || uses_.escapes[v]) return;
    if (!may_run_inside(graph_, uses_, node(index)) || !(graph_.type(value).shape == shape_)) return;
    const std::vector<int>& users = uses_.users[v];
    if (!std::all_of(users.begin(), users.end(), [&](int user) { return holds(user); })) return;
    nodes_.push_back(index);
    if (inputs(nodes_).size() > kMaxClusterInputs) nodes_.pop_back();
  }

  // What the nodes read from outside, in the order of the nodes.
  std::vector<ValueId> inputs(std::vector<int> nodes) const {
    std::sort(nodes.begin(), nodes.end());
    std::vector<ValueId> found;
    for (const int index : nodes) {
      for (const ValueId input : node(index).inputs) {
        const int producer = uses_.producer[static_cast<std::size_t>(input)];
        if (producer >= 0 && holds(producer)) continue;
        if (is_scalar_constant(input) || std::find(found.begin(), found.end(), input) != found.end())
          continue;
        found.push_back(input);
      }
    }
    return found;
  }

  const Graph& graph_;
  const UseMap& uses_;
  std::vector<int> nodes_;  // the root first
  const Shape& shape_;
};

// A node whose only reader would absorb it is no root.
std::optional<Match> match(const Graph& graph, const UseMap& uses, int index) {
  if (!may_be_last(graph, uses, graph.nodes[static_cast<std::size_t>(index)])) return std::nullopt;
  Cluster cluster(graph, uses, index);
  cluster.grow();
  if (cluster.size() < 2) return std::nullopt;
  Match found = cluster.match();
  return found.inputs.empty() ? std::nullopt : std::optional<Match>(std::move(found));
}

}  // namespace

// Matches are tried from the last node to the first, so a cluster's root is seen before what it absorbs.
Status fuse_elementwise(Graph& graph, const PassContext& context) {
  return fuse_matches(graph, "fused_elementwise", match, context);
}

}  // namespace hone
