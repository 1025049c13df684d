#include "graph/cost.h"

#include "graph/op_row.h"

namespace hone {

bool is_launch(const Node& node) {
  const OpRow* row = find_op(node.op);
  return node.op != "constant" && (row == nullptr || row->op_class != OpClass::View);
}

namespace {

void collect_types(const Graph& graph, const Node& node, std::vector<Type>& inputs,
                   std::vector<Type>& outputs) {
  for (const ValueId value : node.inputs) inputs.push_back(graph.type(value));
  for (const ValueId value : node.outputs) outputs.push_back(graph.type(value));
}

}  // namespace

namespace {

// A fused node that appends to states: the states are neither read nor written but for the rows appended.
Dim fused_bytes_moved(const Graph& graph, const Node& node) {
  std::vector<bool> is_state(node.inputs.size(), false);
  Dim sum(0);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const int aliased = aliased_input(node, i);
    if (aliased < 0) {
      sum = sum + type_bytes(graph.type(node.outputs[i]));
    } else {
      is_state[static_cast<std::size_t>(aliased)] = true;
    }
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_state[i]) sum = sum + type_bytes(graph.type(node.inputs[i]));
  }
  for (const Node& inner : node.body->nodes) {
    const OpRow* row = find_op(inner.op);
    if (row != nullptr && row->op_class == OpClass::State)
      sum = sum + type_bytes(node.body->type(inner.inputs[1]));
  }
  return sum;
}

}  // namespace

Dim bytes_moved(const Graph& graph, const Node& node) {
  if (!is_launch(node)) return Dim(0);
  if (node.body != nullptr) return fused_bytes_moved(graph, node);
  const OpRow* row = find_op(node.op);
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  collect_types(graph, node, inputs, outputs);
  Dim sum(0);
  if (row != nullptr && row->bytes_read != nullptr) {
    sum = row->bytes_read(node, inputs, outputs);
  } else {
    for (const Type& type : inputs) sum = sum + type_bytes(type);
  }
  // State ops write only the rows they append, not the state whose memory they share.
  if (row != nullptr && row->op_class == OpClass::State) return sum + type_bytes(inputs[1]);
  for (const Type& type : outputs) sum = sum + type_bytes(type);
  return sum;
}

Dim operations(const Graph& graph, const Node& node) {
  const OpRow* row = find_op(node.op);
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  collect_types(graph, node, inputs, outputs);
  if (row != nullptr && row->operations != nullptr) return row->operations(node, inputs, outputs);
  return outputs.empty() ? Dim(0) : element_count(outputs[0].shape);
}

}  // namespace hone
