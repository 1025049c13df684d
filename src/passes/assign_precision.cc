#include "passes/assign_precision.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "graph/builder.h"
#include "graph/op_row.h"
#include "graph/rewrite.h"
#include "passes/retype.h"
#include "tensor/panel_layout.h"
#include "tensor/projection.h"

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

// Weights that the int8 kernel reads.
bool is_int8_weight(const Type& type) {
  return panel_has_dot_numbers(type.dtype);
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

// True if nothing but elementwise nodes and views stand between `value` and the graph's outputs. The rounding
// of such a product's x reaches the result as it is, where that of all others goes through more sums and
// norms. Where one row is asked for, a second term of it costs next to nothing: the product is bound by
// reading its weights.
bool ends_the_graph(const Graph& graph, const UseMap& uses, ValueId value) {
  const auto v = static_cast<std::size_t>(value);
  if (uses.users[v].empty()) return uses.escapes[v];
  return std::all_of(uses.users[v].begin(), uses.users[v].end(), [&](int user) {
    const Node& node = graph.nodes[static_cast<std::size_t>(user)];
    const OpRow* row = find_op(node.op);
    const bool passes =
        row != nullptr && (row->op_class == OpClass::Elementwise || row->op_class == OpClass::View);
    return passes && ends_the_graph(graph, uses, node.outputs[0]);
  });
}

Node quantise_node(Graph& graph, ValueId x, const std::string& module, std::int64_t terms) {
  Node quantise;
  quantise.op = "quantize_q8a";
  quantise.inputs = {x};
  Shape shape = graph.type(x).shape;
  if (terms == 2) {
    shape.insert(shape.end() - 1, Dim(2));
    quantise.attributes.set("terms", terms);
  }
  quantise.outputs = {graph.add_value({DType::Q8A, std::move(shape)})};
  quantise.module = module;
  return quantise;
}

// projection(x q8a [..,2,K], w) for the product `node` of x [..,K]: its body adds the two terms up.
Result<Node> product_of_terms(const Graph& graph, const Node& node, ValueId terms) {
  GraphBuilder builder("projection", graph.symbols);
  const ValueId x = builder.input("0", graph.type(terms));
  const ValueId w = builder.input("1", graph.type(node.inputs[1]));
  const ValueId both = builder.cast(x, DType::F32);
  const ValueId sum =
      builder.node("reduce_sum", {both}, {{"axis", std::int64_t{-2}}, {"keep_dims", std::int64_t{0}}});
  builder.output("0", builder.matmul_transposed(sum, w));
  ProjectionSection section;
  section.weight = 1;
  std::vector<std::int64_t> fields(kProjectionFields);
  std::memcpy(fields.data(), &section, sizeof(section));
  Node made;
  made.op = "projection";
  made.inputs = {terms, node.inputs[1]};
  made.outputs = node.outputs;
  made.module = node.module;
  made.attributes = {{"sections", std::move(fields)}, {"terms", std::int64_t{2}}};
  made.body = std::make_shared<const Graph>(HONE_TRY(std::move(builder).finish()));
  return made;
}

Status quantise_activations(Graph& graph) {
  const UseMap uses(graph);
  const std::set<ValueId> weights = int8_weights(graph);
  std::map<ValueId, ValueId> quantised;
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!takes_int8(graph, graph.nodes[n], weights)) continue;
    const ValueId x = graph.nodes[n].inputs[0];
    if (graph.nodes[n].op == "matmul" && ends_the_graph(graph, uses, graph.nodes[n].outputs[0])) {
      Node quantise = quantise_node(graph, x, graph.nodes[n].module, 2);
      graph.nodes[n] = HONE_TRY(product_of_terms(graph, graph.nodes[n], quantise.outputs[0]));
      added.emplace_back(static_cast<int>(n), std::move(quantise));
      continue;
    }
    const auto [found, is_new] = quantised.emplace(x, -1);
    if (is_new) {
      Node quantise = quantise_node(graph, x, graph.nodes[n].module, 1);
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
