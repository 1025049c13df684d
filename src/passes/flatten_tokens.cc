#include "passes/flatten_tokens.h"

#include <algorithm>
#include <array>
#include <optional>

#include "graph/body_builder.h"
#include "graph/op_row.h"
#include "graph/rewrite.h"

namespace hone {
namespace {

const Dim& sequences() {
  static const Dim dim = Dim::symbol('B');
  return dim;
}
const Dim& tokens() {
  static const Dim dim = Dim::symbol('T');
  return dim;
}
// B*T, where both stand in one axis.
const Dim& merged_tokens() {
  static const Dim dim = sequences() * tokens();
  return dim;
}
const Dim& all_tokens() {
  static const Dim dim = Dim::symbol('N');
  return dim;
}

// What an axis of a value counts decides how it is rewritten.
enum class Counts : std::uint8_t {
  Neither,    // weights, rows of logits, keys
  Tokens,     // [.., B, .., T, ..] or [.., B*T, ..]: one entry for each token
  Sequences,  // [B], [B,1,..]: one for each sequence
  State,      // [B,C,..]: what outlives the step
};

bool mentions(const Shape& shape, char letter) {
  return std::ranges::any_of(shape, [letter](const Dim& dim) { return dim.mentions(letter); });
}

// The axes of B and T, one and the same for B*T.
struct TokenAxes {
  std::size_t sequence = 0;
  std::size_t token = 0;

  bool adjacent() const { return token == sequence || token == sequence + 1; }
  bool leading() const { return sequence == 0 && adjacent(); }
};

// nullopt if the shape has not each of them once.
std::optional<TokenAxes> token_axes(const Shape& shape) {
  std::optional<std::size_t> sequence;
  std::optional<std::size_t> token;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_constant()) continue;
    const bool is_merged = shape[i] == merged_tokens();
    for (const auto& [symbol, axis] : {std::pair{&sequences(), &sequence}, std::pair{&tokens(), &token}}) {
      if (!is_merged && !(shape[i] == *symbol)) continue;
      if (*axis) return std::nullopt;
      *axis = i;
    }
    const bool known = is_merged || shape[i] == sequences() || shape[i] == tokens();
    if (!known && (shape[i].mentions('B') || shape[i].mentions('T'))) return std::nullopt;
  }
  if (!sequence || !token) return std::nullopt;
  return TokenAxes{*sequence, *token};
}

bool is_state(const Shape& shape) {
  if (shape.size() < 2 || !(shape[0] == sequences()) || !(shape[1] == Dim::symbol('C'))) return false;
  const Shape row(shape.begin() + 2, shape.end());
  return !mentions(row, 'B') && !mentions(row, 'T');
}

bool is_of_sequences(const Shape& shape) {
  if (shape.empty() || !(shape[0] == sequences())) return false;
  const Shape rest(shape.begin() + 1, shape.end());
  return (rest.empty() || rest[0] == Dim(1)) && !mentions(rest, 'B') && !mentions(rest, 'C');
}

// What a value of this shape counts if it is no state; nullopt: nothing that can be rewritten.
std::optional<Counts> counts_of(const Shape& shape) {
  if (!mentions(shape, 'B') && !mentions(shape, 'T')) return Counts::Neither;
  if (token_axes(shape)) return Counts::Tokens;
  if (is_of_sequences(shape) && !mentions(shape, 'T')) return Counts::Sequences;
  return std::nullopt;
}

Dim product_behind(const Shape& shape, std::size_t axis) {
  return element_count(std::span(shape).subspan(axis + 1));
}

// True if each token has the same elements before and after, in the same order: both axes have as much behind
// them.
bool keeps_tokens(const Shape& from, const Shape& to) {
  const std::optional<TokenAxes> a = token_axes(from);
  const std::optional<TokenAxes> b = token_axes(to);
  if (!a || !b) return false;
  const auto behind_sequence = [](const Shape& shape, const TokenAxes& axes) {
    const Dim behind = product_behind(shape, axes.sequence);
    return axes.sequence == axes.token ? behind * tokens() : behind;
  };
  return product_behind(from, a->token) == product_behind(to, b->token) &&
         behind_sequence(from, *a) == behind_sequence(to, *b);
}

// Finds what each value of a graph, or of a body, counts.
class Survey {
 public:
  // `given`: of the graph's inputs.
  Survey(const Graph& graph, std::span<const Counts> given) : graph_(graph), counts_(graph.values.size()) {
    for (std::size_t i = 0; i < given.size(); ++i) at(graph.inputs[i].value) = given[i];
  }

  // False if a node does not treat tokens one by one.
  bool run() {
    return std::ranges::all_of(graph_.nodes, [this](const Node& node) { return visit(node); });
  }
  Counts of(ValueId value) const { return counts_[static_cast<std::size_t>(value)]; }
  std::vector<Counts> of_all(std::span<const ValueId> values) const {
    std::vector<Counts> out;
    out.reserve(values.size());
    for (const ValueId value : values) out.push_back(of(value));
    return out;
  }
  int appends() const { return appends_; }
  int attentions() const { return attentions_; }

 private:
  Counts& at(ValueId value) { return counts_[static_cast<std::size_t>(value)]; }
  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }

  bool visit(const Node& node) {
    if (node.op == "state_append") return append(node);
    if (node.op == "attention") return attention(node);
    const std::vector<Counts> inputs = of_all(node.inputs);
    if (node.body != nullptr) return fused(node, inputs);
    if (std::ranges::find(inputs, Counts::State) != inputs.end()) return view_of_state(node);
    for (const ValueId output : node.outputs) {
      const std::optional<Counts> counts = counts_of(shape(output));
      if (!counts || !row_wise(node, inputs, *counts)) return false;
      at(output) = *counts;
    }
    return true;
  }

  bool append(const Node& node) {
    const std::vector<Counts> inputs = of_all(node.inputs);
    if (inputs != std::vector{Counts::State, Counts::Tokens, Counts::Tokens}) return false;
    at(node.outputs[0]) = Counts::State;
    ++appends_;
    return true;
  }

  // Over the cache alone, and up to each token's position.
  bool attention(const Node& node) {
    const std::vector<Counts> inputs = of_all(node.inputs);
    const bool cached = inputs == std::vector{Counts::Tokens, Counts::State, Counts::State, Counts::Tokens};
    if (!cached || node.body == nullptr || node.outputs.size() != 1) return false;
    const std::optional<TokenAxes> q = token_axes(shape(node.inputs[0]));
    const std::optional<TokenAxes> result = token_axes(shape(node.outputs[0]));
    if (shape(node.inputs[0]).size() != 5 || q->token != 3 || !result || !result->leading()) return false;
    for (const std::size_t keys : {1U, 2U}) {
      if (dtype_row(graph_.type(node.inputs[keys]).dtype).is_quantised) return false;
    }
    at(node.outputs[0]) = Counts::Tokens;
    ++attentions_;
    return true;
  }

  // Only a projection has a kernel that appends besides.
  bool fused(const Node& node, std::span<const Counts> inputs) {
    Survey body(*node.body, inputs);
    if (!body.run() || body.attentions() > 0 || (body.appends() > 0 && node.op != "projection")) return false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      at(node.outputs[i]) = body.of(node.body->outputs[i].value);
    appends_ += body.appends();
    return true;
  }

  // Heads, or parts of a row: [B,C,..] still.
  bool view_of_state(const Node& node) {
    const OpRow* row = find_op(node.op);
    const Shape& to = shape(node.outputs[0]);
    if (row == nullptr || row->op_class != OpClass::View || node.op == "permute" || !is_state(to))
      return false;
    at(node.outputs[0]) = Counts::State;
    return true;
  }

  bool row_wise(const Node& node, std::span<const Counts> inputs, Counts output) const {
    const auto has = [&](Counts counts) { return std::ranges::find(inputs, counts) != inputs.end(); };
    const OpRow* row = find_op(node.op);
    if (row == nullptr) return false;
    if (!has(Counts::Tokens) && !has(Counts::Sequences))
      return output == Counts::Neither || node.op == "broadcast";
    // A sum over a sequence's tokens, or one of them for all.
    if (has(Counts::Tokens) && output == Counts::Sequences) return false;
    if (row->op_class == OpClass::Elementwise) return true;
    if (node.op == "gather") return gather(inputs, output);
    if (output == Counts::Neither) return false;
    if (node.op == "reshape") {
      return has(Counts::Tokens) ? keeps_tokens(shape(node.inputs[0]), shape(node.outputs[0]))
                                 : output == Counts::Sequences;
    }
    if (node.op == "broadcast" || node.op == "copy") return true;
    if (has(Counts::Sequences)) return false;
    if (node.op == "take_along_axis") return is_free_axis(node);
    if (node.op == "matmul" || node.op == "expert_matmul") return inputs[1] == Counts::Neither;
    // Along an axis of T they would lose it: the shape of their result would count no tokens.
    return row->op_class == OpClass::View || row->op_class == OpClass::Reduction || node.op == "concat" ||
           node.op == "quantize_q8a";
  }

  // Rows of a table by the tokens' ids, or some of the tokens' rows by their numbers.
  static bool gather(std::span<const Counts> inputs, Counts output) {
    if (inputs[0] == Counts::Neither) return inputs[1] == Counts::Tokens;
    return inputs[0] == Counts::Tokens && inputs[1] == Counts::Neither && output == Counts::Neither;
  }

  bool is_free_axis(const Node& node) const {
    const Shape& x = shape(node.inputs[0]);
    const std::int64_t axis = node.attributes.integer("axis");
    const Dim& dim = x[static_cast<std::size_t>(axis < 0 ? axis + std::ssize(x) : axis)];
    return !dim.mentions('B') && !dim.mentions('T');
  }

  const Graph& graph_;
  std::vector<Counts> counts_;
  int appends_ = 0;
  int attentions_ = 0;
};

// The shape [1,N,..] of what has one entry for each token, or gets one.
Shape flat_shape(const Shape& shape, Counts counts) {
  Shape out;
  if (counts == Counts::Sequences) {
    out = {Dim(1), all_tokens()};
    if (shape.size() > 2) out.insert(out.end(), shape.begin() + 2, shape.end());
    return out;
  }
  out.reserve(shape.size());
  for (const Dim& dim : shape) {
    if (dim.is_constant()) {
      out.push_back(dim);
    } else if (dim == merged_tokens()) {
      out.push_back(all_tokens());
    } else {
      out.push_back(dim.substitute('B', Dim(1)).substitute('T', all_tokens()));
    }
  }
  return out;
}

std::string flat_symbols(std::string symbols) {
  std::ranges::replace(symbols, 'T', 'N');
  return symbols;
}

// Every dim of a body with N for B and 1 for T: each token is a sequence of one.
void make_tokens_sequences(Graph& body) {
  body.symbols = flat_symbols(body.symbols);
  const auto substitute = [](Shape& shape) {
    for (Dim& dim : shape) {
      if (!dim.is_constant()) dim = dim.substitute('B', all_tokens()).substitute('T', Dim(1));
    }
  };
  for (Value& value : body.values) substitute(value.type.shape);
  for (Node& node : body.nodes) {
    const std::vector<Attributes::Item> items = node.attributes.items();
    for (const auto& [name, value] : items) {
      const auto* dims = std::get_if<std::vector<Dim>>(&value);
      if (dims == nullptr) continue;
      std::vector<Dim> changed = *dims;
      substitute(changed);
      node.attributes.set(name, std::move(changed));
    }
    if (node.body == nullptr) continue;
    Graph inner = *node.body;
    make_tokens_sequences(inner);
    node.body = std::make_shared<const Graph>(std::move(inner));
  }
}

Attributes shape_attribute(Shape shape) {
  return {{"shape", std::move(shape)}};
}

// The rows of a state [B,C,K,E] for each token, [N,C,K,E].
Result<ValueId> state_of_tokens(BodyBuilder& build, const Type& state, ValueId value, ValueId ids) {
  const Dim width = product_behind(state.shape, 0);
  const ValueId flat = HONE_TRY(build.add("reshape", {value}, shape_attribute({state.shape[0], width})));
  const ValueId rows = HONE_TRY(build.add("gather", {flat, ids}));
  Shape shape = state.shape;
  shape[0] = all_tokens();
  const ValueId all = HONE_TRY(build.add("reshape", {rows}, shape_attribute(std::move(shape))));
  if (state.dtype == DType::F32) return all;
  return build.add("cast", {all}, {{"to", std::string(dtype_name(state.dtype))}});
}

// attention(q, k, v, positions) -> attention(q, k, v, positions, sequence).
Result<Graph> flat_attention(const Graph& dense) {
  Graph body = dense;
  std::array<Type, 4> types;
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = dense.type(dense.inputs[i].value);
  const ValueId result = dense.outputs[0].value;
  const Type result_type{dense.type(result).dtype, flat_shape(dense.type(result).shape, Counts::Tokens)};
  make_tokens_sequences(body);
  body.inputs.clear();
  body.outputs.clear();

  BodyBuilder first(body);
  const Type of_tokens{DType::I32, {Dim(1), all_tokens()}};
  const ValueId q = first.input({types[0].dtype, flat_shape(types[0].shape, Counts::Tokens)});
  const ValueId k = first.input(types[1]);
  const ValueId v = first.input(types[2]);
  const ValueId positions = first.input(of_tokens);
  const ValueId sequence = first.input(of_tokens);
  const ValueId ids = HONE_TRY(first.add("reshape", {sequence}, shape_attribute({all_tokens()})));
  // [1,K,G,N,E] -> [N,K,G,1,E]
  const ValueId inner_q =
      HONE_TRY(first.add("permute", {q}, {{"axes", std::vector<std::int64_t>{3, 1, 2, 0, 4}}}));
  const ValueId inner_k = HONE_TRY(state_of_tokens(first, types[1], k, ids));
  const ValueId inner_v = HONE_TRY(state_of_tokens(first, types[2], v, ids));
  const ValueId inner_positions =
      HONE_TRY(first.add("reshape", {positions}, shape_attribute({all_tokens(), Dim(1)})));
  const std::array inner{inner_q, inner_k, inner_v, inner_positions};
  for (std::size_t i = 0; i < inner.size(); ++i) replace_uses(body, dense.inputs[i].value, inner[i]);
  first.put_first();

  BodyBuilder last(body);
  last.output(HONE_TRY(last.add("reshape", {result}, shape_attribute(result_type.shape))));
  last.put_last();
  return body;
}

class Flattener {
 public:
  // `in_body`: values have no names that another graph could know.
  Flattener(Graph& graph, const Survey& survey, bool in_body)
      : graph_(graph), survey_(survey), in_body_(in_body) {}

  // `sequence`: the value i32[1,N] for what touches a state.
  Status run(ValueId sequence) {
    sequence_ = sequence;
    for (Node& node : graph_.nodes) HONE_TRY(rewrite(node));
    const std::size_t count = graph_.values.size() - (sequence < 0 ? 0 : 1);
    for (std::size_t v = 0; v < count; ++v) change_type(static_cast<ValueId>(v));
    graph_.symbols = flat_symbols(graph_.symbols);
    return {};
  }

 private:
  Status rewrite(Node& node) {
    if (node.op == "state_append") {
      node.inputs.push_back(sequence_);
      return {};
    }
    if (node.op == "attention") {
      node.body = std::make_shared<const Graph>(HONE_TRY(flat_attention(*node.body)));
      node.inputs.push_back(sequence_);
      return {};
    }
    const Counts counts = survey_.of(node.outputs[0]);
    if (node.body != nullptr) return rewrite_body(node);
    const auto* shape = node.attributes.get<std::vector<Dim>>("shape");
    const bool changes = counts == Counts::Tokens || counts == Counts::Sequences;
    if (changes && shape != nullptr) node.attributes.set("shape", flat_shape(*shape, counts));
    return {};
  }

  Status rewrite_body(Node& node) {
    Graph body = *node.body;
    Survey survey(*node.body, survey_.of_all(node.inputs));
    if (!survey.run()) return internal_error(node.op, "a body that was surveyed before");
    ValueId sequence = -1;
    if (survey.appends() > 0) {
      node.attributes.set("sequence", std::ssize(node.inputs));
      node.inputs.push_back(sequence_);
      sequence = body.add_value({DType::I32, {Dim(1), all_tokens()}});
      body.inputs.push_back({std::to_string(body.inputs.size()), InputKind::Input, sequence});
    }
    HONE_TRY(Flattener(body, survey, true).run(sequence));
    node.body = std::make_shared<const Graph>(std::move(body));
    return {};
  }

  // A value whose elements stand in another order, or that has more of them, is another value to a reader of
  // names.
  void change_type(ValueId id) {
    const Counts counts = survey_.of(id);
    if (counts != Counts::Tokens && counts != Counts::Sequences) return;
    Value& value = graph_.values[static_cast<std::size_t>(id)];
    const std::optional<TokenAxes> axes = token_axes(value.type.shape);
    if (!in_body_ && (!axes || !axes->adjacent())) value.name = graph_.value_name(id).substr(1) + "_rows";
    value.type.shape = flat_shape(value.type.shape, counts);
  }

  Graph& graph_;
  const Survey& survey_;
  bool in_body_;
  ValueId sequence_ = -1;
};

// What the inputs of the whole graph count; nullopt if one of them cannot be rewritten.
std::optional<std::vector<Counts>> counts_of_inputs(const Graph& graph) {
  std::vector<Counts> out;
  for (const GraphInput& input : graph.inputs) {
    const Shape& shape = graph.type(input.value).shape;
    if (input.kind == InputKind::State) {
      if (!is_state(shape)) return std::nullopt;
      out.push_back(Counts::State);
      continue;
    }
    const std::optional<Counts> counts = counts_of(shape);
    if (!counts) return std::nullopt;
    if (*counts == Counts::Tokens && (!token_axes(shape)->leading() || shape.size() < 2)) return std::nullopt;
    if (*counts == Counts::Sequences && shape.size() != 1) return std::nullopt;
    out.push_back(*counts);
  }
  return out;
}

bool has_flat_outputs(const Graph& graph, const Survey& survey) {
  return std::ranges::all_of(graph.outputs, [&](const GraphOutput& output) {
    const Counts counts = survey.of(output.value);
    if (counts == Counts::Tokens) return token_axes(graph.type(output.value).shape)->leading();
    return counts == Counts::Neither;
  });
}

}  // namespace

Status flatten_tokens(Graph& graph, const PassContext& context) {
  constexpr std::string_view kSequence = "sequence";
  const std::optional<std::vector<Counts>> inputs = counts_of_inputs(graph);
  if (!inputs || graph.find_input(kSequence) != nullptr || graph.symbols.find('N') != std::string::npos)
    return {};
  Survey survey(graph, *inputs);
  if (!survey.run() || survey.appends() == 0 || !has_flat_outputs(graph, survey)) return {};
  context.fired("step-input", std::ranges::count(*inputs, Counts::Tokens));
  context.fired("input-of-each-sequence", std::ranges::count(*inputs, Counts::Sequences));
  context.fired("state-append", survey.appends());
  context.fired("attention", survey.attentions());
  const ValueId sequence = graph.add_value({DType::I32, {Dim(1), all_tokens()}}, std::string(kSequence));
  // Behind the last input of the step, in front of weights and states.
  const auto last = std::find_if(graph.inputs.rbegin(), graph.inputs.rend(),
                                 [](const GraphInput& input) { return input.kind == InputKind::Input; });
  graph.inputs.insert(last.base(), {std::string(kSequence), InputKind::Input, sequence});
  return Flattener(graph, survey, false).run(sequence);
}

}  // namespace hone
