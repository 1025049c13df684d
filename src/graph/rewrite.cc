#include "graph/rewrite.h"

#include <algorithm>
#include <map>
#include <string>

#include "graph/op_row.h"

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

// The body of a fused node, and the map from values of the graph to values of the body.
class Body {
 public:
  Body(const Graph& graph, const UseMap& uses, const Outline& what)
      : graph_(graph), uses_(uses), what_(what) {
    body_.name = what.op;
    body_.symbols = graph.symbols;
  }

  Result<Graph> build() {
    for (const ValueId input : what_.inputs) {
      body_.inputs.push_back({std::to_string(body_.inputs.size()), InputKind::Input, add_value(input)});
    }
    std::vector<int> order = what_.nodes;
    std::sort(order.begin(), order.end());
    for (const int index : order) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(index)];
      for (const ValueId input : node.inputs) HONE_TRY(bring(input));
      if (node.body != nullptr && node.op == what_.flatten) {
        add_body(node);
      } else {
        add_node(node);
      }
    }
    for (const ValueId output : what_.outputs) {
      const auto found = map_.find(output);
      if (found == map_.end())
        return internal_error(std::string(what_.op), "an output is not written by the nodes");
      body_.outputs.push_back({std::to_string(body_.outputs.size()), found->second});
    }
    return std::move(body_);
  }

 private:
  ValueId add_value(ValueId outer) {
    const ValueId inner = body_.add_value(graph_.type(outer));
    map_[outer] = inner;
    return inner;
  }
  void add_node(const Node& node) {
    Node copy = node;
    copy.module.clear();
    for (ValueId& input : copy.inputs) input = map_.find(input)->second;
    for (ValueId& output : copy.outputs) output = add_value(output);
    body_.nodes.push_back(std::move(copy));
  }
  void add_body(const Node& node) {
    const Graph& inner = *node.body;
    std::map<ValueId, ValueId> inner_map;
    for (std::size_t i = 0; i < inner.inputs.size(); ++i)
      inner_map[inner.inputs[i].value] = map_.find(node.inputs[i])->second;
    for (const Node& from : inner.nodes) {
      Node copy = from;
      for (ValueId& input : copy.inputs) input = inner_map.find(input)->second;
      for (ValueId& output : copy.outputs) {
        const ValueId added = body_.add_value(inner.type(output));
        inner_map[output] = added;
        output = added;
      }
      body_.nodes.push_back(std::move(copy));
    }
    for (std::size_t i = 0; i < inner.outputs.size(); ++i)
      map_[node.outputs[i]] = inner_map.find(inner.outputs[i].value)->second;
  }
  // Makes `value` known in the body: it is already, or its producer is copied.
  Status bring(ValueId value) {
    if (map_.contains(value)) return {};
    const int index = uses_.producer[static_cast<std::size_t>(value)];
    const Node* node = index < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(index)];
    const OpRow* row = node == nullptr ? nullptr : find_op(node->op);
    if (row == nullptr || (row->op_class != OpClass::Source && row->op_class != OpClass::View &&
                           row->op_class != OpClass::Elementwise)) {
      return internal_error(
          std::string(what_.op),
          "the outlined nodes read a value that is not among the inputs: " + graph_.value_name(value));
    }
    for (const ValueId input : node->inputs) HONE_TRY(bring(input));
    add_node(*node);
    return {};
  }

  const Graph& graph_;
  const UseMap& uses_;
  const Outline& what_;
  Graph body_;
  std::map<ValueId, ValueId> map_;
};

}  // namespace

Result<Node> fused_node(const Graph& graph, const UseMap& uses, const Outline& what) {
  if (what.nodes.empty()) return internal_error(std::string(what.op), "there are no nodes to outline");
  Node fused;
  fused.op = what.op;
  fused.inputs = what.inputs;
  fused.outputs = what.outputs;
  fused.attributes = what.attributes;
  const int last = *std::max_element(what.nodes.begin(), what.nodes.end());
  fused.module = graph.nodes[static_cast<std::size_t>(last)].module;
  fused.body = std::make_shared<const Graph>(HONE_TRY(Body(graph, uses, what).build()));
  return fused;
}

void put_in_place(Graph& graph, std::span<const int> nodes, Node fused) {
  put_at(graph, nodes, *std::max_element(nodes.begin(), nodes.end()), std::move(fused));
}

void put_at(Graph& graph, std::span<const int> nodes, int slot, Node fused) {
  for (const int index : nodes) graph.nodes[static_cast<std::size_t>(index)] = Node{};
  graph.nodes[static_cast<std::size_t>(slot)] = std::move(fused);
}

void remove_dead_nodes(Graph& graph) {
  std::vector<bool> read(graph.values.size(), false);
  for (const GraphOutput& output : graph.outputs) read[static_cast<std::size_t>(output.value)] = true;
  for (const GraphOutput& update : graph.state_updates) read[static_cast<std::size_t>(update.value)] = true;
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    const bool live = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId value) { return read[static_cast<std::size_t>(value)]; });
    if (!live) {
      node = Node{};
      continue;
    }
    for (const ValueId input : node.inputs) read[static_cast<std::size_t>(input)] = true;
  }
  sweep(graph);
}

void insert_before(Graph& graph, std::vector<std::pair<int, Node>> added) {
  std::stable_sort(added.begin(), added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size() + added.size());
  std::size_t next = 0;
  for (std::size_t n = 0; n <= graph.nodes.size(); ++n) {
    while (next < added.size() && (added[next].first <= static_cast<int>(n) || n == graph.nodes.size())) {
      nodes.push_back(std::move(added[next++].second));
    }
    if (n < graph.nodes.size()) nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
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
