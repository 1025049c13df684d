#include "graph/rewrite.h"

#include <algorithm>
#include <map>

namespace hone {

const Node* producer_if(const Graph& graph, const UseMap& uses, ValueId value, std::string_view op) {
  const int index = uses.producer[static_cast<std::size_t>(value)];
  if (index < 0) return nullptr;
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  return node.op == op ? &node : nullptr;
}

const double* scalar_constant(const Graph& graph, const UseMap& uses, ValueId value) {
  for (int steps = 0; steps < 8; ++steps) {
    const int index = uses.producer[static_cast<std::size_t>(value)];
    if (index < 0) return nullptr;
    const Node& node = graph.nodes[static_cast<std::size_t>(index)];
    if (node.op == "constant") {
      const auto* values = node.attributes.get<std::vector<double>>("values");
      return values != nullptr && values->size() == 1 ? values->data() : nullptr;
    }
    if (node.op != "reshape" && node.op != "broadcast") return nullptr;
    value = node.inputs[0];
  }
  return nullptr;
}

bool only_outputs_escape(const Graph& graph, const UseMap& uses, std::span<const int> nodes,
                         std::span<const ValueId> outputs) {
  const auto inside = [&](int node) { return std::find(nodes.begin(), nodes.end(), node) != nodes.end(); };
  for (const int index : nodes) {
    for (const ValueId value : graph.nodes[static_cast<std::size_t>(index)].outputs) {
      if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) continue;
      const auto v = static_cast<std::size_t>(value);
      if (uses.escapes[v]) return false;
      if (!std::all_of(uses.users[v].begin(), uses.users[v].end(), inside)) return false;
    }
  }
  return true;
}

namespace {

// The body of an outlined node, and the map from values of the graph to values of the body.
class Body {
 public:
  Body(const Graph& graph, std::string_view name) : graph_(graph) {
    body_.name = name;
    body_.symbols = graph.symbols;
  }
  void add_input(ValueId value) {
    const ValueId inner = body_.add_value(graph_.type(value));
    map_[value] = inner;
    body_.inputs.push_back({std::to_string(body_.inputs.size()), InputKind::Input, inner});
  }
  void add_node(const Node& node) {
    Node copy = node;
    copy.module.clear();
    for (ValueId& input : copy.inputs) input = map_.at(input);
    for (ValueId& output : copy.outputs) {
      const ValueId inner = body_.add_value(graph_.type(output));
      map_[output] = inner;
      output = inner;
    }
    body_.nodes.push_back(std::move(copy));
  }
  bool has(ValueId value) const { return map_.contains(value); }
  Graph finish(std::span<const ValueId> outputs) {
    for (const ValueId value : outputs) {
      body_.outputs.push_back({std::to_string(body_.outputs.size()), map_.at(value)});
    }
    return std::move(body_);
  }

 private:
  const Graph& graph_;
  Graph body_;
  std::map<ValueId, ValueId> map_;
};

}  // namespace

void outline(Graph& graph, std::span<const int> nodes, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
             std::string_view op, Attributes attributes) {
  std::vector<int> order(nodes.begin(), nodes.end());
  std::sort(order.begin(), order.end());
  Body body(graph, op);
  for (const ValueId input : inputs) body.add_input(input);
  // Constants (and views of them) that the nodes read and that are not given as inputs go along.
  const UseMap uses(graph);
  const auto bring_constant = [&](const auto& self, ValueId value) -> void {
    const int index = uses.producer[static_cast<std::size_t>(value)];
    if (body.has(value) || index < 0 || std::find(order.begin(), order.end(), index) != order.end()) return;
    const Node& node = graph.nodes[static_cast<std::size_t>(index)];
    for (const ValueId input : node.inputs) self(self, input);
    body.add_node(node);
  };
  for (const int index : order) {
    const Node& node = graph.nodes[static_cast<std::size_t>(index)];
    for (const ValueId input : node.inputs) bring_constant(bring_constant, input);
    body.add_node(node);
  }
  Node fused;
  fused.op = op;
  fused.inputs = std::move(inputs);
  fused.outputs = std::move(outputs);
  fused.attributes = std::move(attributes);
  const int last = order.back();
  fused.module = graph.nodes[static_cast<std::size_t>(last)].module;
  fused.body = std::make_shared<const Graph>(body.finish(fused.outputs));
  for (const int index : order) {
    Node& node = graph.nodes[static_cast<std::size_t>(index)];
    node = Node{};
  }
  graph.nodes[static_cast<std::size_t>(last)] = std::move(fused);
}

void sweep(Graph& graph) {
  std::erase_if(graph.nodes, [](const Node& node) { return node.op.empty(); });
}

void replace_uses(Graph& graph, ValueId from, ValueId to) {
  for (Node& node : graph.nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
  for (GraphOutput& output : graph.outputs) {
    if (output.value == from) output.value = to;
  }
  for (GraphOutput& update : graph.state_updates) {
    if (update.value == from) update.value = to;
  }
}

}  // namespace hone
