#include "passes/assign_precision.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>

#include "graph/body_builder.h"
#include "graph/builder.h"
#include "graph/op_row.h"
#include "graph/rewrite.h"
#include "passes/retype.h"
#include "tensor/panel_layout.h"
#include "tensor/projection.h"

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;  // elements of a q8a block (tensor/block_formats.h)

// A row of a state of q8_0 is whole blocks.
Status check_blocks(const Graph& graph, const Node& append) {
  const std::optional<std::int64_t> head = graph.type(append.inputs[0]).shape.back().as_constant();
  if (head && *head % kBlock == 0) return {};
  return Error{ErrorCode::Usage,
               Fault::User,
               append.module,
               "the KV cache cannot be of q8_0 here",
               fmt::format("heads of a multiple of {} elements", kBlock),
               head ? fmt::format("{}", *head) : std::string("heads whose size is no constant"),
               "--kv f16, or rules that leave this module out: --precision FILE"};
}

// The f32 states of `chosen` become `dtype`: their type, a cast of the rows in front of the append, and
// whatever reads its result.
Status narrow_states(Graph& graph, const std::set<ValueId>& states, DType dtype) {
  std::vector<ValueId> appended;
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    if (node.op != "state_append" || !states.contains(node.inputs[0])) continue;
    if (dtype == DType::Q8_0) HONE_TRY(check_blocks(graph, node));
    graph.values[static_cast<std::size_t>(node.inputs[0])].type.dtype = dtype;
    appended.push_back(node.outputs[0]);
    if (dtype == DType::Q8_0) continue;  // the append rounds
    Node cast;
    cast.op = "cast";
    cast.inputs = {node.inputs[1]};
    cast.outputs = {graph.add_value({dtype, graph.type(node.inputs[1]).shape})};
    cast.attributes.set("to", std::string(dtype_name(dtype)));
    cast.module = node.module;
    node.inputs[1] = cast.outputs[0];
    added.emplace_back(static_cast<int>(n), std::move(cast));
  }
  insert_before(graph, std::move(added));
  return retype_values(graph, appended, dtype);
}

// Weights that a kernel of rounded activations reads.
bool has_rounded_products(const Type& type) {
  return panel_has_dot_numbers(type.dtype) || type.dtype == DType::BF16;
}

using Weights = std::map<ValueId, std::string_view>;

// With their names.
Weights weights_of_rounded(const Graph& graph) {
  Weights weights;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::Weight && has_rounded_products(graph.type(input.value)))
      weights.emplace(input.value, input.name);
  }
  return weights;
}

// The inputs of `node` that are weights if it is a product whose kernel may read rounded activations; none
// otherwise.
std::span<const ValueId> weights_of(const Graph& graph, const Node& node, const Weights& weights) {
  const bool experts = node.op == "expert_matmul";
  if (node.op != "matmul" && node.op != "swiglu_mlp" && node.op != "geglu_mlp" && !experts) return {};
  // Behind the weights of expert_matmul stand the numbers of the experts.
  const std::span<const ValueId> read =
      std::span(node.inputs).subspan(1, experts ? 1 : node.inputs.size() - 1);
  if (!std::all_of(read.begin(), read.end(), [&](ValueId value) { return weights.contains(value); }))
    return {};
  const Type& x = graph.type(node.inputs[0]);
  const std::optional<std::int64_t> k = x.shape.empty() ? std::nullopt : x.shape.back().as_constant();
  return x.dtype == DType::F32 && k && *k % kBlock == 0 ? read : std::span<const ValueId>();
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

Node rounding_node(Graph& graph, ValueId x, const std::string& module, Activations type) {
  Node quantise;
  if (type == Activations::Bf16) {
    quantise.op = "cast";
    quantise.inputs = {x};
    quantise.attributes.set("to", std::string(dtype_name(DType::BF16)));
    quantise.outputs = {graph.add_value({DType::BF16, graph.type(x).shape})};
    quantise.module = module;
    return quantise;
  }
  const std::int64_t terms = type == Activations::Q8aTwoTerms ? 2 : 1;
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

// Of weights of bf16: f32 where one of them says so. No kernel multiplies rows of bf16 by experts.
Activations bf16_activations_of(const PrecisionPolicy& policy, const Node& node,
                                std::span<const ValueId> read, const Weights& weights) {
  if (node.op == "expert_matmul") return Activations::F32;
  const Activations unless_told = policy.bf16_activations ? Activations::Bf16 : Activations::F32;
  const bool all = std::all_of(read.begin(), read.end(), [&](ValueId weight) {
    const auto told = policy.products.find(weights.at(weight));
    return (told == policy.products.end() ? unless_told : told->second) == Activations::Bf16;
  });
  return all ? Activations::Bf16 : Activations::F32;
}

// What the product `node` reads: of its weights the choice that rounds least.
Activations activations_of(const Graph& graph, const UseMap& uses, const PrecisionPolicy& policy,
                           const Node& node, const Weights& weights) {
  const std::span<const ValueId> read = weights_of(graph, node, weights);
  if (read.empty()) return Activations::F32;
  const auto is_bf16 = [&](ValueId value) { return graph.type(value).dtype == DType::BF16; };
  if (std::any_of(read.begin(), read.end(), is_bf16))
    return std::all_of(read.begin(), read.end(), is_bf16) ? bf16_activations_of(policy, node, read, weights)
                                                          : Activations::F32;
  const bool last = node.op == "matmul" && ends_the_graph(graph, uses, node.outputs[0]);
  const Activations unless_told = !policy.int8_activations   ? Activations::F32
                                  : policy.two_terms || last ? Activations::Q8aTwoTerms
                                                             : Activations::Q8a;
  Activations least = Activations::Q8a;
  for (const ValueId weight : read) {
    const auto told = policy.products.find(weights.at(weight));
    const Activations choice = told == policy.products.end() ? unless_told : told->second;
    if (choice == Activations::F32 || least == Activations::F32) {
      least = Activations::F32;
    } else if (choice == Activations::Q8aTwoTerms) {
      least = choice;
    }
  }
  // No kernel adds up two terms of a row by its expert's weights.
  return least == Activations::Q8aTwoTerms && node.op == "expert_matmul" ? Activations::F32 : least;
}

// The body of a product of x [..,2,K] by a weight: it adds the two terms up.
Result<Graph> body_of_terms(const Graph& graph, const Node& node, ValueId terms) {
  GraphBuilder builder("projection", graph.symbols);
  const ValueId x = builder.input("0", graph.type(terms));
  const ValueId w = builder.input("1", graph.type(node.inputs[1]));
  const ValueId both = builder.cast(x, DType::F32);
  const ValueId sum =
      builder.node("reduce_sum", {both}, {{"axis", std::int64_t{-2}}, {"keep_dims", std::int64_t{0}}});
  builder.output("0", builder.matmul_transposed(sum, w));
  return std::move(builder).finish();
}

// That of a gated MLP: its own, with the sum of the terms as its x.
Result<Graph> gated_body_of_terms(const Graph& graph, const Node& node, ValueId terms) {
  Graph body = *node.body;
  body.name = "projection";
  const ValueId x = body.inputs[0].value;
  body.inputs[0].value = body.add_value(graph.type(terms));
  BodyBuilder builder(body);
  const ValueId both = HONE_TRY(builder.add("cast", {body.inputs[0].value}, {{"to", std::string("f32")}}));
  const ValueId sum = HONE_TRY(
      builder.add("reduce_sum", {both}, {{"axis", std::int64_t{-2}}, {"keep_dims", std::int64_t{0}}}));
  for (Node& inner : body.nodes) std::replace(inner.inputs.begin(), inner.inputs.end(), x, sum);
  builder.put_first();
  return body;
}

// projection(x q8a [..,2,K], ..) for the product `node` of x [..,K].
Result<Node> product_of_terms(const Graph& graph, const Node& node, ValueId terms) {
  ProjectionSection section;
  section.weight = 1;
  if (node.body != nullptr) {
    section.gate = 1;
    section.weight = 2;
    section.activation = static_cast<std::int64_t>(node.op == "swiglu_mlp" ? ProjectionActivation::Silu
                                                                           : ProjectionActivation::GeluTanh);
  }
  std::vector<std::int64_t> fields(kProjectionFields);
  std::memcpy(fields.data(), &section, sizeof(section));
  Node made;
  made.op = "projection";
  made.inputs = node.inputs;
  made.inputs[0] = terms;
  made.outputs = node.outputs;
  made.module = node.module;
  made.attributes = {{"sections", std::move(fields)}, {"terms", std::int64_t{2}}};
  made.body = std::make_shared<const Graph>(HONE_TRY(
      node.body == nullptr ? body_of_terms(graph, node, terms) : gated_body_of_terms(graph, node, terms)));
  return made;
}

// `node` reads the value `x`, rounded to `dtype`.
void read_rounded(Node& node, ValueId x, DType dtype) {
  node.inputs[0] = x;
  if (node.body == nullptr) return;
  // In the body only the two matmuls read x, and they take it as it is.
  Graph body = *node.body;
  body.values[static_cast<std::size_t>(body.inputs[0].value)].type.dtype = dtype;
  node.body = std::make_shared<const Graph>(std::move(body));
}

Status round_activations(Graph& graph, const PrecisionPolicy& policy) {
  const UseMap uses(graph);
  const Weights weights = weights_of_rounded(graph);
  std::map<std::pair<ValueId, Activations>, ValueId> rounded;
  std::vector<std::pair<int, Node>> added;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Activations chosen = activations_of(graph, uses, policy, graph.nodes[n], weights);
    if (chosen == Activations::F32) continue;
    const ValueId x = graph.nodes[n].inputs[0];
    const auto [found, is_new] = rounded.try_emplace({x, chosen}, -1);
    if (is_new) {
      Node rounding = rounding_node(graph, x, graph.nodes[n].module, chosen);
      found->second = rounding.outputs[0];
      added.emplace_back(static_cast<int>(n), std::move(rounding));
    }
    if (chosen == Activations::Q8aTwoTerms) {
      graph.nodes[n] = HONE_TRY(product_of_terms(graph, graph.nodes[n], found->second));
    } else {
      read_rounded(graph.nodes[n], found->second, chosen == Activations::Bf16 ? DType::BF16 : DType::Q8A);
    }
  }
  insert_before(graph, std::move(added));
  return {};
}

// The f32 states, by the type that each is to have.
std::map<DType, std::set<ValueId>> states_by_type(const Graph& graph, const PrecisionPolicy& policy) {
  std::map<DType, std::set<ValueId>> states;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind != InputKind::State || graph.type(input.value).dtype != DType::F32) continue;
    const auto told = policy.states.find(input.name);
    states[told == policy.states.end() ? policy.kv : told->second].insert(input.value);
  }
  return states;
}

}  // namespace

Status assign_precision(Graph& graph, const PassContext& context) {
  const PrecisionPolicy& policy = context.precision;
  for (const auto& [dtype, states] : states_by_type(graph, policy)) {
    if (dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::Q8_0) {
      HONE_TRY(narrow_states(graph, states, dtype));
    } else if (dtype != DType::F32) {
      return Error{ErrorCode::Usage,
                   Fault::User,
                   "--kv",
                   "the KV cache cannot have this type",
                   "f32, f16, bf16 or q8_0",
                   std::string(dtype_name(dtype)),
                   "choose one of these"};
    }
  }
  const bool rounds = policy.int8_activations || policy.bf16_activations || !policy.products.empty();
  return rounds ? round_activations(graph, policy) : Status{};
}

}  // namespace hone
