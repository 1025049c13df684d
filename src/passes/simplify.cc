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

ValueId multiply_by_one(const Site& site) {
  const std::vector<ValueId>& inputs = site.node.inputs;
  if (site.is_number(inputs[1], 1)) return site.if_same_type(inputs[0]);
  return site.is_number(inputs[0], 1) ? site.if_same_type(inputs[1]) : -1;
}

ValueId divide_by_one(const Site& site) {
  return site.is_number(site.node.inputs[1], 1) ? site.if_same_type(site.node.inputs[0]) : -1;
}

ValueId add_nothing(const Site& site) {
  const std::vector<ValueId>& inputs = site.node.inputs;
  // The neutral element of floating-point addition is -0.0.
  const double nothing = site.is_float() ? -0.0 : 0.0;
  if (site.is_number(inputs[1], nothing)) return site.if_same_type(inputs[0]);
  return site.is_number(inputs[0], nothing) ? site.if_same_type(inputs[1]) : -1;
}

ValueId subtract_zero(const Site& site) {
  return site.is_number(site.node.inputs[1], 0.0) ? site.if_same_type(site.node.inputs[0]) : -1;
}

ValueId double_negation(const Site& site) {
  const Node* inner = site.made_by(site.node.inputs[0], "neg");
  return inner == nullptr ? -1 : inner->inputs[0];
}

ValueId to_same_type(const Site& site) {
  return site.if_same_type(site.node.inputs[0]);
}

ValueId concat_of_one(const Site& site) {
  return site.node.inputs.size() == 1 ? site.node.inputs[0] : -1;
}

ValueId identity_permute(const Site& site) {
  const auto* axes = site.node.attributes.get<std::vector<std::int64_t>>("axes");
  for (std::size_t i = 0; axes != nullptr && i < axes->size(); ++i) {
    if ((*axes)[i] != static_cast<std::int64_t>(i)) return -1;
  }
  return site.node.inputs[0];
}

struct Rule {
  std::string_view name;
  std::string_view op;             // of the nodes it looks at
  ValueId (*result)(const Site&);  // the value that stands for the node's, or -1
};
constexpr Rule kRules[] = {
    {"multiply-by-one", "mul", multiply_by_one},
    {"divide-by-one", "div", divide_by_one},
    {"add-nothing", "add", add_nothing},
    {"subtract-zero", "sub", subtract_zero},
    {"double-negation", "neg", double_negation},
    {"cast-to-same-type", "cast", to_same_type},
    {"reshape-to-same-shape", "reshape", to_same_type},
    {"broadcast-to-same-shape", "broadcast", to_same_type},
    {"slice-of-whole", "slice", to_same_type},
    {"identity-permute", "permute", identity_permute},
    {"concat-of-one", "concat", concat_of_one},
};

bool reshape_of_reshape(const Site& site) {
  const Node* inner = site.made_by(site.node.inputs[0], "reshape");
  if (inner == nullptr) return false;
  site.node.inputs[0] = inner->inputs[0];
  return true;
}

bool permute_of_permute(const Site& site) {
  const Node* inner = site.made_by(site.node.inputs[0], "permute");
  if (inner == nullptr) return false;
  const auto* outer_axes = site.node.attributes.get<std::vector<std::int64_t>>("axes");
  const auto* inner_axes = inner->attributes.get<std::vector<std::int64_t>>("axes");
  if (outer_axes == nullptr || inner_axes == nullptr) return false;
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : *outer_axes) axes.push_back((*inner_axes)[static_cast<std::size_t>(axis)]);
  const ValueId source = inner->inputs[0];
  site.node.attributes.set("axes", std::move(axes));
  site.node.inputs[0] = source;
  return true;
}

// Rules that let the node read what the view before it reads.
struct ViewRule {
  std::string_view name;
  std::string_view op;
  bool (*rewrite)(const Site&);
};
constexpr ViewRule kViewRules[] = {
    {"reshape-of-reshape", "reshape", reshape_of_reshape},
    {"permute-of-permute", "permute", permute_of_permute},
};

}  // namespace

Status simplify(Graph& graph, const PassContext& context) {
  const UseMap uses(graph);
  // The value that stands for each value: operands are renamed as the walk comes to them.
  std::vector<ValueId> stands_for(graph.values.size());
  for (std::size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueId>(i);
  const auto rename = [&](ValueId& value) { value = stands_for[static_cast<std::size_t>(value)]; };
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) rename(input);
    if (node.outputs.size() != 1) continue;
    const Site site{graph, uses, node};
    for (const ViewRule& rule : kViewRules) {
      if (rule.op == node.op && rule.rewrite(site)) context.fired(rule.name);
    }
    for (const Rule& rule : kRules) {
      const ValueId same = rule.op == node.op ? rule.result(site) : -1;
      if (same < 0) continue;
      // An output that is an input of the graph would have two owners of its memory.
      const auto v = static_cast<std::size_t>(node.outputs[0]);
      if (uses.escapes[v] && uses.producer[static_cast<std::size_t>(same)] < 0) continue;
      stands_for[v] = same;
      context.fired(rule.name);
      break;
    }
  }
  for (GraphOutput& output : graph.outputs) rename(output.value);
  for (GraphOutput& update : graph.state_updates) rename(update.value);
  remove_dead_nodes(graph);
  return {};
}

}  // namespace hone
