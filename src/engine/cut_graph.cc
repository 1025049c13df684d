#include "engine/cut_graph.h"

#include <algorithm>
#include <map>

#include "graph/op_row.h"

namespace hone {
namespace {

// An output lies contiguous in the memory of activations; what is a view, a state, static or an input is
// copied there.
void add_output(Graph& out, const Node* producer, std::string name, ValueId value) {
  bool in_place = producer != nullptr && producer->op != "constant";
  for (std::size_t i = 0; in_place && i < producer->outputs.size(); ++i) {
    if (producer->outputs[i] == value) in_place = aliased_input(*producer, i) < 0;
  }
  if (!in_place) {
    Node copy;
    copy.op = "copy";
    copy.inputs = {value};
    copy.outputs = {out.add_value(out.type(value))};
    value = copy.outputs[0];
    out.nodes.push_back(std::move(copy));
  }
  out.outputs.push_back({std::move(name), value});
}

class Cutter {
 public:
  Cutter(const Graph& graph, const std::function<bool(ValueId)>& given)
      : graph_(graph),
        given_(given),
        uses_(graph),
        static_(static_values(graph)),
        taken_(graph.nodes.size()) {
    for (const GraphInput& input : graph.inputs) inputs_[input.value] = &input;
  }

  Cut run(std::span<const ValueId> targets) {
    Cut cut;
    Graph& out = cut.graph;
    out.name = graph_.name;
    out.symbols = graph_.symbols;
    out.values = graph_.values;
    for (const ValueId target : targets) take_producer(target);
    // Everything that is read and neither computed here nor static is an input.
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!taken_[n]) continue;
      ++cut.nodes;
      Node node = graph_.nodes[n];
      for (ValueId& input : node.inputs) input = operand(out, input);
      for (const GraphOutput& update : graph_.state_updates) {
        const auto& written = node.outputs;
        if (std::find(written.begin(), written.end(), update.value) != written.end())
          out.state_updates.push_back(update);
      }
      out.nodes.push_back(std::move(node));
    }
    for (const ValueId target : targets) {
      const int index = producer(target);
      const Node* node = index < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(index)];
      add_output(out, node, graph_.value_name(target), index < 0 ? operand(out, target) : target);
    }
    return cut;
  }

 private:
  int producer(ValueId value) const { return uses_.producer[static_cast<std::size_t>(value)]; }

  // Takes the node that writes `value`, and what it needs; a stack, for chains are as deep as the model.
  void take_producer(ValueId value) {
    std::vector<ValueId> open{value};
    while (!open.empty()) {
      const int index = producer(open.back());
      open.pop_back();
      if (index < 0 || taken_[static_cast<std::size_t>(index)]) continue;
      taken_[static_cast<std::size_t>(index)] = true;
      for (const ValueId input : graph_.nodes[static_cast<std::size_t>(index)].inputs) {
        if (static_.contains(input) || !given_(input)) open.push_back(input);
      }
    }
  }

  bool is_fed(ValueId value) const {
    if (static_.contains(value)) return false;
    const auto input = inputs_.find(value);
    if (input != inputs_.end()) return input->second->kind == InputKind::Input;
    return given_(value);
  }

  // What a node of the piece reads in place of `value`.
  ValueId operand(Graph& out, ValueId value) {
    const auto known = operands_.find(value);
    if (known != operands_.end()) return known->second;
    ValueId read = value;
    const auto input = inputs_.find(value);
    if (is_fed(value)) {
      read = out.add_value(graph_.type(value));
      out.inputs.push_back({graph_.value_name(value), InputKind::Input, read});
    } else if (input != inputs_.end()) {
      out.inputs.push_back(*input->second);
    }
    operands_[value] = read;
    return read;
  }

  const Graph& graph_;
  const std::function<bool(ValueId)>& given_;
  UseMap uses_;
  std::set<ValueId> static_;
  std::vector<bool> taken_;
  std::map<ValueId, const GraphInput*> inputs_;
  std::map<ValueId, ValueId> operands_;
};

// Copies nodes into `out`, with the bodies of fused ones in their place. `map`: values of `from` -> of `out`;
// where it has none, one is added.
void copy_nodes(const Graph& from, std::map<ValueId, ValueId>& map, Graph& out) {
  const auto value_of = [&](ValueId value) {
    const auto found = map.find(value);
    if (found != map.end()) return found->second;
    const ValueId made = out.add_value(from.type(value));
    map[value] = made;
    return made;
  };
  for (const Node& node : from.nodes) {
    Node copy = node;
    for (ValueId& input : copy.inputs) input = value_of(input);
    for (ValueId& output : copy.outputs) output = value_of(output);
    if (node.body == nullptr) {
      out.nodes.push_back(std::move(copy));
      continue;
    }
    const Graph& body = *node.body;
    std::map<ValueId, ValueId> inner;
    for (std::size_t i = 0; i < body.inputs.size(); ++i) inner[body.inputs[i].value] = copy.inputs[i];
    for (std::size_t i = 0; i < body.outputs.size(); ++i) inner[body.outputs[i].value] = copy.outputs[i];
    copy_nodes(body, inner, out);
  }
}

}  // namespace

std::set<ValueId> static_values(const Graph& graph) {
  std::set<ValueId> out;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::Weight) out.insert(input.value);
  }
  for (const Node& node : graph.nodes) {
    const OpRow* row = find_op(node.op);
    if (row == nullptr || (row->op_class != OpClass::Source && row->op_class != OpClass::View)) continue;
    const bool fixed = std::all_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId input) { return out.contains(input); });
    if (fixed) out.insert(node.outputs[0]);
  }
  return out;
}

Cut cut_graph(const Graph& graph, std::span<const ValueId> targets,
              const std::function<bool(ValueId)>& given) {
  return Cutter(graph, given).run(targets);
}

void expose_all(Graph& graph) {
  graph.outputs.clear();
  const std::vector<Node> nodes = graph.nodes;
  for (const Node& node : nodes) {
    for (const ValueId value : node.outputs) add_output(graph, &node, graph.value_name(value), value);
  }
}

Graph without_bodies(const Graph& graph) {
  Graph out = graph;
  out.nodes.clear();
  std::map<ValueId, ValueId> same;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    same[static_cast<ValueId>(i)] = static_cast<ValueId>(i);
  copy_nodes(graph, same, out);
  return out;
}

}  // namespace hone
