#include "passes/fold_constants.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "graph/op_row.h"

namespace hone {
namespace {

// A result small enough to stand in the program.
bool is_small(const Type& type) {
  const std::optional<std::int64_t> count = element_count(type.shape).as_constant();
  return count && *count <= kMaxFoldedElements && !dtype_row(type.dtype).is_quantised;
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

// What is known of the values of a graph while its nodes are walked through.
class Folding {
 public:
  Folding(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  void walk() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) visit(n);
  }

 private:
  void visit(std::size_t index) {
    Node& node = graph_.nodes[index];
    const OpRow* row = find_op(node.op);
    if (row == nullptr || row->op_class == OpClass::State || node.outputs.size() != 1) return;
    const ValueId result = node.outputs[0];
    if (std::optional<ConstantTensor> tensor = tensor_of(graph_, node)) {
      constants_.emplace(result, std::move(*tensor));
      return;
    }
    const auto is_known = [&](ValueId input) {
      return constants_.contains(input) || repeated_.contains(input);
    };
    if (!is_small(graph_.type(result)) || !std::ranges::all_of(node.inputs, is_known)) return;
    const auto is_repeated = [&](ValueId input) { return repeated_.contains(input); };
    if (node.op == "broadcast" || (row->op_class == OpClass::View && is_repeated(node.inputs[0]))) {
      repeated_.emplace(result, index);
      return;
    }
    const ConstantTensor* tensor = value_of(node);
    if (tensor == nullptr) return;
    context_.fired(node.op);
    node = constant_node(node, *tensor);
  }

  // What the node computes; nullptr where its op has no reference kernel, which is no fault of the graph, or
  // a constant cannot hold it.
  const ConstantTensor* value_of(const Node& node) {
    std::vector<ConstantTensor> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) {
      const auto found = constants_.find(input);
      const ConstantTensor* tensor =
          found != constants_.end() ? &found->second : value_of(graph_.nodes[repeated_.at(input)]);
      if (tensor == nullptr) return nullptr;
      inputs.push_back(*tensor);
    }
    const Type types[] = {graph_.type(node.outputs[0])};
    Result<std::vector<ConstantTensor>> outputs = context_.evaluator->evaluate(node, inputs, types);
    if (!outputs.ok() || outputs->size() != 1 || !exact_as_doubles(outputs->front())) return nullptr;
    return &constants_.emplace(node.outputs[0], std::move(outputs->front())).first->second;
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<ValueId, ConstantTensor> constants_;
  // Broadcasts of constants and views of them, by the node that writes them. They cost nothing as they are,
  // and are computed where a fold reads them.
  std::map<ValueId, std::size_t> repeated_;
};

}  // namespace

Status fold_constants(Graph& graph, const PassContext& context) {
  if (context.evaluator != nullptr) Folding(graph, context).walk();
  return {};
}

}  // namespace hone
