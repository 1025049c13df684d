#include "graph/op_row.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <mutex>

#include "base/nearest_name.h"
#include "graph/op_rows.h"

namespace hone {
namespace {

// Rows by name, and in order of registration. Built-in rows are there from the first look.
struct Registry {
  std::mutex mutex;
  std::map<std::string_view, const OpRow*> by_name;
  std::vector<const OpRow*> in_order;

  Registry() {
    for (const std::span<const OpRow> group :
         {elementwise_rows(), primitive_rows(), routing_rows(), fused_rows()}) {
      for (const OpRow& row : group) {
        by_name.emplace(row.name, &row);
        in_order.push_back(&row);
      }
    }
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

const OpRow* find_op(std::string_view op) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.by_name.find(op);
  return found == all.by_name.end() ? nullptr : found->second;
}

std::vector<const OpRow*> all_ops() {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  return all.in_order;
}

Status register_op(const OpRow* row) {
  const auto refuse = [&](std::string message) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 fmt::format("op '{}'", row->name),
                 std::move(message),
                 {},
                 {},
                 "complete the row and register it again"};
  };
  if (row->name.empty()) return refuse("an op row needs a name");
  if (row->infer == nullptr) return refuse("an op row needs a type rule (infer)");
  if (row->max_inputs >= 0 && row->max_inputs < row->min_inputs)
    return refuse("max_inputs is below min_inputs");
  if (row->summary.empty()) return refuse("an op row needs a one-line summary");
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  if (!all.by_name.emplace(row->name, row).second) return refuse("an op of this name is registered already");
  all.in_order.push_back(row);
  return {};
}

std::string_view nearest_op(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpRow* row : all_ops()) names.push_back(row->name);
  return nearest_name(name, names);
}

int aliased_input(const Node& node, std::size_t output) {
  const OpRow* row = find_op(node.op);
  if (row != nullptr && row->aliases >= 0) return output == 0 ? row->aliases : -1;
  if (node.body == nullptr || output >= node.body->outputs.size()) return -1;
  const Graph& body = *node.body;
  for (const Node& inner : body.nodes) {
    for (std::size_t i = 0; i < inner.outputs.size(); ++i) {
      if (inner.outputs[i] != body.outputs[output].value) continue;
      const OpRow* inner_row = find_op(inner.op);
      if (inner_row != nullptr && inner_row->op_class == OpClass::View) return -1;
      const int aliased = aliased_input(inner, i);
      if (aliased < 0) return -1;
      const ValueId state = inner.inputs[static_cast<std::size_t>(aliased)];
      for (std::size_t j = 0; j < body.inputs.size(); ++j) {
        if (body.inputs[j].value == state) return static_cast<int>(j);
      }
      return -1;
    }
  }
  return -1;
}

Result<std::vector<Type>> infer_types(const Graph& graph, const Node& node) {
  const std::string where =
      node.module.empty() ? fmt::format("op {}", node.op) : fmt::format("op {} of {}", node.op, node.module);
  const OpRow* row = find_op(node.op);
  if (row == nullptr) {
    const std::string_view near = nearest_op(node.op);
    return Error{ErrorCode::BadModel,
                 Fault::User,
                 where,
                 "no op has this name",
                 "a registered op",
                 node.op,
                 near.empty() ? "" : fmt::format("did you mean '{}'?", near)};
  }
  const int count = static_cast<int>(node.inputs.size());
  if (count < row->min_inputs || (row->max_inputs >= 0 && count > row->max_inputs)) {
    const std::string wanted = row->max_inputs == row->min_inputs ? fmt::format("{}", row->min_inputs)
                               : row->max_inputs < 0
                                   ? fmt::format("at least {}", row->min_inputs)
                                   : fmt::format("{} to {}", row->min_inputs, row->max_inputs);
    return Error{ErrorCode::BadModel,      Fault::Hone, where, "wrong number of inputs", wanted,
                 fmt::format("{}", count), {}};
  }
  std::vector<Type> types;
  types.reserve(node.inputs.size());
  for (const ValueId input : node.inputs) types.push_back(graph.type(input));
  Result<std::vector<Type>> result = row->infer(node, types);
  if (result.ok()) return result;
  Error error = std::move(result).error();
  error.where = where;
  if (error.actual.empty()) {
    for (const Type& type : types) {
      if (!error.actual.empty()) error.actual += ", ";
      error.actual += type_to_string(type);
    }
  }
  return error;
}

}  // namespace hone
