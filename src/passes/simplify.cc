#include "passes/simplify.h"

#include <cmath>

#include "graph/rewrite.h"

namespace hone {
namespace {

// What one rule sees. Views of views are rewritten in place; every other rule names the value that replaces
// the result.
struct Site {
  Graph& graph;
  const UseMap& uses;
  Node& node;

  const Type& type(ValueId value) const { return graph.type(value); }
  const Node* made_by(ValueId value, std::string_view op) const {
    return producer_if(graph, uses, value, op);
  }
  bool is_number(ValueId value, double number) const {
    const double* found = scalar_constant(graph, uses, value);
    return found != nullptr && *found == number && std::signbit(*found) == std::signbit(number);
  }
  bool is_float() const { return dtype_row(type(node.outputs[0]).dtype).is_float; }
  // `value`, if it can stand for the result: the operand did not broadcast.
  ValueId if_same_type(ValueId value) const { return type(value) == type(node.outputs[0]) ? value : -1; }
};

ValueId times_one(const Site& site) {
  const Node& node = site.node;
  if (node.op != "mul" && node.op != "div") return -1;
  if (site.is_number(node.inputs[1], 1)) return site.if_same_type(node.inputs[0]);
  if (node.op == "mul" && site.is_number(node.inputs[0], 1)) return site.if_same_type(node.inputs[1]);
  return -1;
}

ValueId plus_nothing(const Site& site) {
  const Node& node = site.node;
  if (node.op == "add") {
    // The neutral element of floating-point addition is -0.0.
    const double nothing = site.is_float() ? -0.0 : 0.0;
    if (site.is_number(node.inputs[1], nothing)) return site.if_same_type(node.inputs[0]);
    if (site.is_number(node.inputs[0], nothing)) return site.if_same_type(node.inputs[1]);
  }
  if (node.op == "sub" && site.is_number(node.inputs[1], 0.0)) return site.if_same_type(node.inputs[0]);
  return -1;
}

ValueId twice_negated(const Site& site) {
  if (site.node.op != "neg") return -1;
  const Node* inner = site.made_by(site.node.inputs[0], "neg");
  return inner == nullptr ? -1 : inner->inputs[0];
}

ValueId same_type(const Site& site) {
  const std::string& op = site.node.op;
  if (op != "cast" && op != "reshape" && op != "broadcast") return -1;
  return site.if_same_type(site.node.inputs[0]);
}

ValueId identity_permute(const Site& site) {
  if (site.node.op != "permute") return -1;
  const auto* axes = site.node.attributes.get<std::vector<std::int64_t>>("axes");
  for (std::size_t i = 0; axes != nullptr && i < axes->size(); ++i) {
    if ((*axes)[i] != static_cast<std::int64_t>(i)) return -1;
  }
  return site.node.inputs[0];
}

void reshape_of_reshape(const Site& site) {
  if (site.node.op != "reshape") return;
  if (const Node* inner = site.made_by(site.node.inputs[0], "reshape"))
    site.node.inputs[0] = inner->inputs[0];
}

void permute_of_permute(const Site& site) {
  const Node* inner = site.node.op == "permute" ? site.made_by(site.node.inputs[0], "permute") : nullptr;
  if (inner == nullptr) return;
  const auto* outer_axes = site.node.attributes.get<std::vector<std::int64_t>>("axes");
  const auto* inner_axes = inner->attributes.get<std::vector<std::int64_t>>("axes");
  if (outer_axes == nullptr || inner_axes == nullptr) return;
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : *outer_axes) axes.push_back((*inner_axes)[static_cast<std::size_t>(axis)]);
  const ValueId source = inner->inputs[0];
  site.node.attributes.set("axes", std::move(axes));
  site.node.inputs[0] = source;
}

using Rule = ValueId (*)(const Site&);
constexpr Rule kRules[] = {times_one, plus_nothing, twice_negated, same_type, identity_permute};

}  // namespace

Status simplify(Graph& graph, const PassContext&) {
  const UseMap uses(graph);
  // The value that stands for each value: operands are renamed as the walk comes to them.
  std::vector<ValueId> stands_for(graph.values.size());
  for (std::size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueId>(i);
  const auto rename = [&](ValueId& value) { value = stands_for[static_cast<std::size_t>(value)]; };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) rename(input);
    if (node.outputs.size() != 1) continue;
    const Site site{graph, uses, node};
    reshape_of_reshape(site);
    permute_of_permute(site);
    for (const Rule rule : kRules) {
      const ValueId same = rule(site);
      if (same < 0) continue;
      // An output that is an input of the graph would have two owners of its memory.
      const auto v = static_cast<std::size_t>(node.outputs[0]);
      if (uses.escapes[v] && uses.producer[static_cast<std::size_t>(same)] < 0) continue;
      stands_for[v] = same;
      break;
    }
  }
  for (GraphOutput& output : graph.outputs) rename(output.value);
  for (GraphOutput& update : graph.state_updates) rename(update.value);
  remove_dead_nodes(graph);
  return {};
}

}  // namespace hone
