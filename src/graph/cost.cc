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

// Of a fused node: all inputs but the states that it appends to, which are neither read nor written but for
// the rows appended.
Dim fused_bytes_read(const Graph& graph, const Node& node) {
  std::vector<bool> is_state(node.inputs.size(), false);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const int aliased = aliased_input(node, i);
    if (aliased >= 0) is_state[static_cast<std::size_t>(aliased)] = true;
  }
  Dim sum(0);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!is_state[i]) sum = sum + type_bytes(graph.type(node.inputs[i]));
  }
  return sum;
}

Dim fused_bytes_written(const Graph& graph, const Node& node) {
  Dim sum(0);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (aliased_input(node, i) < 0) sum = sum + type_bytes(graph.type(node.outputs[i]));
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
  if (node.body != nullptr) return fused_bytes_read(graph, node) + fused_bytes_written(graph, node);
  const OpRow* row = find_op(node.op);
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  collect_types(graph, node, inputs, outputs);
  Dim sum = bytes_written(graph, node);
  if (row != nullptr && row->bytes_read != nullptr) return sum + row->bytes_read(node, inputs, outputs);
  for (const Type& type : inputs) sum = sum + type_bytes(type);
  return sum;
}

Dim bytes_written(const Graph& graph, const Node& node) {
  if (!is_launch(node)) return Dim(0);
  if (node.body != nullptr) return fused_bytes_written(graph, node);
  const OpRow* row = find_op(node.op);
  // State ops write only the rows they append, not the state whose memory they share.
  if (row != nullptr && row->op_class == OpClass::State) return type_bytes(graph.type(node.inputs[1]));
  Dim sum(0);
  for (const ValueId value : node.outputs) sum = sum + type_bytes(graph.type(value));
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
