#include "graph/graph.h"

#include <fmt/format.h>

namespace hone {

std::string type_to_string(const Type& type) {
  return std::string(dtype_name(type.dtype)) + shape_to_string(type.shape);
}

Dim type_bytes(const Type& type) {
  const DTypeRow& row = dtype_row(type.dtype);
  if (row.block_elements == 1) return element_count(type.shape) * Dim(row.block_bytes);
  Dim blocks(row.block_bytes);
  for (std::size_t i = 0; i + 1 < type.shape.size(); ++i) blocks = blocks * type.shape[i];
  return blocks * ceil_div(type.shape.back(), row.block_elements);
}

ValueId Graph::add_value(Type type, std::string value_name) {
  values.push_back(Value{std::move(type), std::move(value_name)});
  return static_cast<ValueId>(values.size() - 1);
}

std::string Graph::value_name(ValueId value) const {
  const std::string& given = values[static_cast<std::size_t>(value)].name;
  return given.empty() ? fmt::format("%{}", value) : "%" + given;
}

const GraphInput* Graph::find_input(std::string_view input_name) const {
  for (const GraphInput& input : inputs) {
    if (input.name == input_name) return &input;
  }
  return nullptr;
}

UseMap::UseMap(const Graph& graph)
    : producer(graph.values.size(), -1), users(graph.values.size()), escapes(graph.values.size(), false) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId output : graph.nodes[n].outputs)
      producer[static_cast<std::size_t>(output)] = static_cast<int>(n);
    for (const ValueId input : graph.nodes[n].inputs) {
      std::vector<int>& list = users[static_cast<std::size_t>(input)];
      if (list.empty() || list.back() != static_cast<int>(n)) list.push_back(static_cast<int>(n));
    }
  }
  for (const GraphOutput& output : graph.outputs) escapes[static_cast<std::size_t>(output.value)] = true;
  for (const GraphOutput& update : graph.state_updates)
    escapes[static_cast<std::size_t>(update.value)] = true;
}

bool UseMap::only_used_by(ValueId value, int node) const {
  const auto v = static_cast<std::size_t>(value);
  return !escapes[v] && users[v].size() == 1 && users[v][0] == node;
}

}  // namespace hone
