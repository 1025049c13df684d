#include "passes/assign_precision.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/rewrite.h"
#include "passes/retype.h"

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;  // elements of a q8a block (tensor/block_formats.h)

// All f32 states become `dtype`: their type, a cast of the rows in front of the append, and whatever reads
// its result.
Status narrow_states(Graph& graph, DType dtype) {
  std::set<ValueId> states;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::State && graph.type(input.value).dtype == DType::F32)
      states.insert(input.value);
  }
  std::vector<ValueId> appended;
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.op != "state_append" || !states.contains(node.inputs[0])) continue;
    graph.values[static_cast<std::size_t>(node.inputs[0])].type.dtype = dtype;
    Node cast;
    cast.op = "cast";
    cast.inputs = {node.inputs[1]};
    cast.outputs = {graph.add_value({dtype, graph.type(node.inputs[1]).shape})};
    cast.attributes.set("to", std::string(dtype_name(dtype)));
    cast.module = node.module;
    node.inputs[1] = cast.outputs[0];
    added.emplace_back(static_cast<int>(n), std::move(cast));
    appended.push_back(node.outputs[0]);
  }
  insert_before(graph, std::move(added));
  return retype_values(graph, appended, dtype);
}

// Weights that the int8 kernel reads: 32 elements to a block, as q8a has.
bool is_int8_weight(const Type& type) {
  return type.dtype == DType::Q4_0 || type.dtype == DType::Q4_1 || type.dtype == DType::Q8_0;
}

std::set<ValueId> int8_weights(const Graph& graph) {
  std::set<ValueId> weights;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::Weight && is_int8_weight(graph.type(input.value)))
      weights.insert(input.value);
  }
  return weights;
}

bool takes_int8(const Graph& graph, const Node& node, const std::set<ValueId>& weights) {
  const bool experts = node.op == "expert_matmul";
  if (node.op != "matmul" && node.op != "swiglu_mlp" && node.op != "geglu_mlp" && !experts) return false;
  // Behind the weights of expert_matmul stand the numbers of the experts.
  for (std::size_t i = 1; i < (experts ? 2 : node.inputs.size()); ++i) {
    if (!weights.contains(node.inputs[i])) return false;
  }
  const Type& x = graph.type(node.inputs[0]);
  const std::optional<std::int64_t> k = x.shape.empty() ? std::nullopt : x.shape.back().as_constant();
  return x.dtype == DType::F32 && k && *k % kBlock == 0;
}

Status quantise_activations(Graph& graph) {
  const std::set<ValueId> weights = int8_weights(graph);
  std::map<ValueId, ValueId> quantised;
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!takes_int8(graph, graph.nodes[n], weights)) continue;
    const ValueId x = graph.nodes[n].inputs[0];
    const auto [found, is_new] = quantised.emplace(x, -1);
    if (is_new) {
      Node quantise;
      quantise.op = "quantize_q8a";
      quantise.inputs = {x};
      quantise.outputs = {graph.add_value({DType::Q8A, graph.type(x).shape})};
      quantise.module = graph.nodes[n].module;
      found->second = quantise.outputs[0];
      added.emplace_back(static_cast<int>(n), std::move(quantise));
    }
    Node& node = graph.nodes[n];
    node.inputs[0] = found->second;
    if (node.body == nullptr) continue;
    // In the body only the two matmuls read x, and they take q8a.
    Graph body = *node.body;
    body.values[static_cast<std::size_t>(body.inputs[0].value)].type.dtype = DType::Q8A;
    node.body = std::make_shared<const Graph>(std::move(body));
  }
  insert_before(graph, std::move(added));
  return {};
}

}  // namespace

Status assign_precision(Graph& graph, const PassContext& context) {
  const DType kv = context.precision.kv;
  if (kv == DType::F16 || kv == DType::BF16) {
    HONE_TRY(narrow_states(graph, kv));
  } else if (kv != DType::F32) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--kv",
                 "the KV cache cannot have this type",
                 "f32, f16 or bf16",
                 std::string(dtype_name(kv)),
                 "choose one of these"};
  }
  return context.precision.int8_activations ? quantise_activations(graph) : Status{};
}

}  // namespace hone
