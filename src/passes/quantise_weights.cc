#include "passes/quantise_weights.h"

#include <algorithm>
#include <set>

#include "graph/op_row.h"
#include "passes/match.h"

namespace hone {
namespace {

constexpr std::int64_t kWeightBlock = 32;  // elements of a q8_0 block (tensor/block_formats.h)

// What a choice is made by: the rows that top_k reads, and what they are computed of, back to the products.
std::set<ValueId> values_of_choices(const Graph& graph, const UseMap& uses) {
  std::set<ValueId> found;
  std::vector<ValueId> left;
  for (const Node& node : graph.nodes) {
    if (node.op == "top_k") left.push_back(node.inputs[0]);
  }
  while (!left.empty()) {
    const ValueId value = left.back();
    left.pop_back();
    const int index = uses.producer[static_cast<std::size_t>(value)];
    if (index < 0 || !found.insert(value).second) continue;
    const Node& node = graph.nodes[static_cast<std::size_t>(index)];
    const OpRow* row = find_op(node.op);
    if (row == nullptr || row->op_class == OpClass::Contraction) continue;
    left.insert(left.end(), node.inputs.begin(), node.inputs.end());
  }
  return found;
}

bool is_quantisable(const Graph& graph, const UseMap& uses, const std::set<ValueId>& choices,
                    ValueId weight) {
  const auto v = static_cast<std::size_t>(weight);
  const Type& type = graph.type(weight);
  const std::optional<std::int64_t> k = last_extent(type.shape);
  if (type.dtype != DType::F32 && type.dtype != DType::F16 && type.dtype != DType::BF16) return false;
  if (type.shape.size() < 2 || !k || *k % kWeightBlock != 0) return false;
  if (uses.users[v].empty() || uses.escapes[v]) return false;
  return std::ranges::all_of(uses.users[v], [&](int user) {
    const Node& node = graph.nodes[static_cast<std::size_t>(user)];
    const bool product =
        (node.op == "matmul" && node.attributes.integer("transpose_b") != 0) || node.op == "expert_matmul";
    return product && node.inputs[1] == weight && std::ranges::count(node.inputs, weight) == 1 &&
           !choices.contains(node.outputs[0]);
  });
}

}  // namespace

Status quantise_weights(Graph& graph, const PassContext& context) {
  if (!context.precision.weights) return {};
  const DType dtype = *context.precision.weights;
  if (dtype != DType::Q8_0) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--weights",
                 "weights cannot be loaded as this type",
                 "q8_0",
                 std::string(dtype_name(dtype)),
                 "hone quantize writes files of other types"};
  }
  const UseMap uses(graph);
  const std::set<ValueId> choices = values_of_choices(graph, uses);
  for (const GraphInput& input : graph.inputs) {
    if (input.kind != InputKind::Weight || !is_quantisable(graph, uses, choices, input.value)) continue;
    DType& type = graph.values[static_cast<std::size_t>(input.value)].type.dtype;
    context.fired(dtype_name(type));
    type = dtype;
  }
  return {};
}

}  // namespace hone
