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

Dim bytes_moved(const Graph& graph, const Node& node) {
  if (!is_launch(node)) return Dim(0);
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
