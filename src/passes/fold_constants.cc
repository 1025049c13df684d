#include "passes/fold_constants.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/op_row.h"

namespace hone {
namespace {

using Constants = std::map<ValueId, ConstantTensor>;

bool may_fold(const Graph& graph, const Node& node, const Constants& constants) {
  const OpRow* row = find_op(node.op);
  if (row == nullptr || row->op_class == OpClass::Source || row->op_class == OpClass::State) return false;
  if (node.op == "broadcast" || node.outputs.size() != 1 || node.inputs.empty()) return false;
  const Type& type = graph.type(node.outputs[0]);
  const std::optional<std::int64_t> count = element_count(type.shape).as_constant();
  if (!count || *count > kMaxFoldedElements || dtype_row(type.dtype).is_quantised) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return constants.contains(input); });
}

bool exact_as_doubles(const ConstantTensor& tensor) {
  if (tensor.type.dtype != DType::I64 && tensor.type.dtype != DType::U64) return true;
  constexpr double kLimit = 9007199254740992.0;  // 2^53
  return std::all_of(tensor.values.begin(), tensor.values.end(),
                     [](double v) { return std::fabs(v) < kLimit; });
}

Node constant_node(const Node& from, const ConstantTensor& tensor) {
  Node node;
  node.op = "constant";
  node.outputs = from.outputs;
  node.module = from.module;
  node.attributes.set("dtype", std::string(dtype_name(tensor.type.dtype)));
  node.attributes.set("shape", tensor.type.shape);
  node.attributes.set("values", tensor.values);
  return node;
}

// A constant node's tensor, with its values as the element type holds them.
std::optional<ConstantTensor> tensor_of(const Graph& graph, const Node& node) {
  const auto* values = node.attributes.get<std::vector<double>>("values");
  if (node.op != "constant" || values == nullptr || node.outputs.empty()) return std::nullopt;
  return ConstantTensor{graph.type(node.outputs[0]), *values};
}

}  // namespace

Status fold_constants(Graph& graph, const PassContext& context) {
  if (context.evaluator == nullptr) return {};
  Constants constants;
  for (Node& node : graph.nodes) {
    if (may_fold(graph, node, constants)) {
      std::vector<ConstantTensor> inputs;
      inputs.reserve(node.inputs.size());
      for (const ValueId input : node.inputs) inputs.push_back(constants.at(input));
      const Type types[] = {graph.type(node.outputs[0])};
      const Result<std::vector<ConstantTensor>> outputs = context.evaluator->evaluate(node, inputs, types);
      // An op without a reference kernel stays as it is: that is no fault of the graph.
      if (outputs.ok() && outputs->size() == 1 && exact_as_doubles(outputs->front())) {
        node = constant_node(node, outputs->front());
      }
    }
    if (std::optional<ConstantTensor> tensor = tensor_of(graph, node)) {
      constants.emplace(node.outputs[0], std::move(*tensor));
    }
  }
  return {};
}

}  // namespace hone
