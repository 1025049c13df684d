#include "passes/fuse_rope.h"

#include "passes/match.h"

namespace hone {
namespace {

// a = first * cos - second * sin;  b = second * cos + first * sin.
struct Turned {
  ValueId first = -1, second = -1, cos = -1, sin = -1;
};

bool is_product(Pattern& pattern, ValueId value, ValueId x, ValueId y) {
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return false;
  return (product->inputs[0] == x && product->inputs[1] == y) ||
         (product->inputs[0] == y && product->inputs[1] == x);
}

bool is_second_row(Pattern& pattern, ValueId b, const Turned& turned) {
  const Node* sum = pattern.take(b, "add");
  if (sum == nullptr) return false;
  for (const auto& [with_cos, with_sin] : both_orders(*sum)) {
    Pattern attempt = pattern;
    if (!is_product(attempt, with_cos, turned.second, turned.cos)) continue;
    if (!is_product(attempt, with_sin, turned.first, turned.sin)) continue;
    pattern = attempt;
    return true;
  }
  return false;
}

// All ways to read a and b as a turned pair: four, of which the caller knows the right one by what first and
// second are.
template <class Accept>
std::optional<Turned> match_turn(Pattern& pattern, ValueId a, ValueId b, const Accept& accept) {
  const Node* difference = pattern.take(a, "sub");
  if (difference == nullptr) return std::nullopt;
  const Node* left = pattern.take(difference->inputs[0], "mul");
  const Node* right = pattern.take(difference->inputs[1], "mul");
  if (left == nullptr || right == nullptr) return std::nullopt;
  for (const auto& [first, cos] : both_orders(*left)) {
    for (const auto& [second, sin] : both_orders(*right)) {
      const Turned turned{first, second, cos, sin};
      Pattern attempt = pattern;
      if (!is_second_row(attempt, b, turned) || !accept(turned)) continue;
      pattern = attempt;
      return turned;
    }
  }
  return std::nullopt;
}

// What a slice along the last axis reads, if it is [begin, end).
std::optional<ValueId> sliced(const Pattern& pattern, ValueId value, std::int64_t begin, std::int64_t end) {
  const Node* slice = pattern.look(value, "slice");
  if (slice == nullptr) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(pattern.shape(value).size());
  const std::int64_t axis = slice->attributes.integer("axis");
  const auto* range = slice->attributes.get<std::vector<Dim>>("range");
  if (axis != -1 && axis != rank - 1) return std::nullopt;
  if (range == nullptr || range->size() != 2 || !((*range)[0] == Dim(begin)) || !((*range)[1] == Dim(end))) {
    return std::nullopt;
  }
  return slice->inputs[0];
}

bool joins_last_axis(const Pattern& pattern, const Node& concat) {
  const auto rank = static_cast<std::int64_t>(pattern.shape(concat.outputs[0]).size());
  const std::int64_t axis = concat.attributes.integer("axis");
  return axis == -1 || axis == rank - 1;
}

// The table f32 [B,T,R/2] behind cos or sin as it stands in the products with an x of `rank` axes.
std::optional<ValueId> find_table(const Pattern& pattern, ValueId operand, std::size_t rank,
                                  const Type& wanted) {
  AxisPath path = pattern.path(operand, rank);
  do {
    bool fits = pattern.type(path.value()) == wanted && path.moves(0, 0) && path.moves(1, 1);
    for (std::size_t i = 2; fits && i < rank; ++i) fits = path.moves(i, i + 1 == rank ? 2 : kRepeats);
    if (fits) return path.value();
  } while (path.step());
  return std::nullopt;
}

struct Rope {
  ValueId x = -1, cos = -1, sin = -1;
  bool interleaved = false;
};

// With first and second of shape [B,T,..,R/2].
std::optional<Rope> with_tables(const Pattern& pattern, const Turned& turned, ValueId x, bool interleaved) {
  const Type& type = pattern.type(turned.first);
  const std::size_t rank = type.shape.size();
  if (type.dtype != DType::F32 || rank < 3) return std::nullopt;
  const Type table{DType::F32, {type.shape[0], type.shape[1], type.shape.back()}};
  const std::optional<ValueId> cos = find_table(pattern, turned.cos, rank, table);
  const std::optional<ValueId> sin = find_table(pattern, turned.sin, rank, table);
  if (!cos || !sin) return std::nullopt;
  return Rope{x, *cos, *sin, interleaved};
}

std::optional<Rope> match_half(Pattern& pattern, ValueId a, ValueId b) {
  const std::optional<std::int64_t> half = last_extent(pattern.shape(a));
  if (!half) return std::nullopt;
  ValueId x = -1;
  const auto accept = [&](const Turned& turned) {
    const std::optional<ValueId> lower = sliced(pattern, turned.first, 0, *half);
    if (!lower || lower != sliced(pattern, turned.second, *half, 2 * *half)) return false;
    x = *lower;
    return true;
  };
  const std::optional<Turned> turned = match_turn(pattern, a, b, accept);
  return turned ? with_tables(pattern, *turned, x, false) : std::nullopt;
}

// The [..,R/2,2] of which `value` [..,R/2] is column `column`.
std::optional<ValueId> column_of(const Pattern& pattern, ValueId value, std::int64_t column) {
  const Node* reshape = pattern.look(value, "reshape");
  if (reshape == nullptr) return std::nullopt;
  const std::optional<ValueId> pairs = sliced(pattern, reshape->inputs[0], column, column + 1);
  if (!pairs) return std::nullopt;
  Shape expected = pattern.shape(value);
  expected.emplace_back(2);
  return pattern.shape(*pairs) == expected ? pairs : std::nullopt;
}

// x [..,R] is what the pairs [..,R/2,2] are a reshape of; `pairs` if there is no such value.
ValueId whole_of(const Pattern& pattern, ValueId pairs, const Shape& whole) {
  const Node* reshape = pattern.look(pairs, "reshape");
  return reshape != nullptr && pattern.shape(reshape->inputs[0]) == whole ? reshape->inputs[0] : pairs;
}

std::optional<Rope> match_interleaved(Pattern& pattern, const Node& last) {
  const Node* concat = pattern.take(last.inputs[0], "concat");
  if (concat == nullptr || concat->inputs.size() != 2 || !joins_last_axis(pattern, *concat))
    return std::nullopt;
  const Node* a = pattern.take(concat->inputs[0], "reshape");
  const Node* b = pattern.take(concat->inputs[1], "reshape");
  if (a == nullptr || b == nullptr || !(pattern.shape(concat->inputs[0]).back() == Dim(1)))
    return std::nullopt;
  Shape whole = pattern.shape(a->inputs[0]);
  if (whole.empty() || !(pattern.shape(concat->inputs[0]).size() == whole.size() + 1)) return std::nullopt;
  whole.back() = whole.back() * Dim(2);
  if (!(pattern.shape(last.outputs[0]) == whole)) return std::nullopt;
  ValueId pairs = -1;
  const auto accept = [&](const Turned& turned) {
    const std::optional<ValueId> even = column_of(pattern, turned.first, 0);
    if (!even || even != column_of(pattern, turned.second, 1)) return false;
    pairs = *even;
    return true;
  };
  const std::optional<Turned> turned = match_turn(pattern, a->inputs[0], b->inputs[0], accept);
  return turned ? with_tables(pattern, *turned, whole_of(pattern, pairs, whole), true) : std::nullopt;
}

// All R dims of x turned: a reshape (interleaved) or a concat of the two halves.
std::optional<Rope> match_whole(Pattern& pattern, ValueId value) {
  if (const Node* reshape = pattern.take(value, "reshape")) return match_interleaved(pattern, *reshape);
  const Node* concat = pattern.take(value, "concat");
  if (concat == nullptr || concat->inputs.size() != 2 || !joins_last_axis(pattern, *concat))
    return std::nullopt;
  return match_half(pattern, concat->inputs[0], concat->inputs[1]);
}

// R < E: turned dims joined with the rest. Spelled concat(turned, rest) or concat(a, b, rest).
std::optional<Rope> match_partial(Pattern& pattern, ValueId value) {
  const Node* concat = pattern.take(value, "concat");
  if (concat == nullptr || !joins_last_axis(pattern, *concat)) return std::nullopt;
  const std::size_t parts = concat->inputs.size();
  if (parts != 2 && parts != 3) return std::nullopt;
  std::optional<Rope> rope = parts == 2 ? match_whole(pattern, concat->inputs[0])
                                        : match_half(pattern, concat->inputs[0], concat->inputs[1]);
  const std::optional<std::int64_t> width = last_extent(pattern.shape(value));
  const std::optional<std::int64_t> rest = last_extent(pattern.shape(concat->inputs[parts - 1]));
  if (!rope || !width || !rest) return std::nullopt;
  const std::optional<ValueId> x = sliced(pattern, concat->inputs[parts - 1], *width - *rest, *width);
  if (!x || !(pattern.type(*x) == pattern.type(value))) return std::nullopt;
  // The halves are cut from x itself, or from the slice of it that turns.
  if (rope->x != *x && sliced(pattern, rope->x, 0, *width - *rest) != x) return std::nullopt;
  rope->x = *x;
  return rope;
}

// The rope whose result `node` writes. Its x may still be the pairs [..,R/2,2].
std::optional<std::pair<Match, Rope>> match_rope(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "concat" && last.op != "reshape") return std::nullopt;
  const ValueId value = last.outputs[0];
  for (const auto matcher : {match_partial, match_whole}) {
    Pattern pattern(graph, uses);
    const std::optional<Rope> rope = matcher(pattern, value);
    if (!rope) continue;
    return std::pair{Match{pattern.nodes(),
                           {rope->x, rope->cos, rope->sin},
                           value,
                           {{"interleaved", std::int64_t{rope->interleaved ? 1 : 0}}}},
                     *rope};
  }
  return std::nullopt;
}

std::optional<Match> match_rope_at(const Graph& graph, const UseMap& uses, int node) {
  std::optional<std::pair<Match, Rope>> found = match_rope(graph, uses, node);
  if (!found || !(graph.type(found->second.x) == graph.type(found->first.output))) return std::nullopt;
  return std::move(found->first);
}

// simplify joins the reshape to pairs with one before it, and then no value is x [..,R]: writes it out again.
void restore_whole(Graph& graph) {
  const UseMap uses(graph);
  const auto without_whole = [](const Graph& g, const UseMap& u, int node) -> std::optional<Match> {
    std::optional<std::pair<Match, Rope>> found = match_rope(g, u, node);
    if (!found || !found->second.interleaved || g.type(found->second.x) == g.type(found->first.output)) {
      return std::nullopt;
    }
    return std::move(found->first);
  };
  std::vector<std::pair<int, Node>> added;
  for (const Match& match : find_matches(graph, uses, without_whole)) {
    const ValueId pairs = match.inputs[0];
    Shape shape = graph.type(pairs).shape;
    const int index = uses.producer[static_cast<std::size_t>(pairs)];
    if (index < 0) continue;
    Node& to_pairs = graph.nodes[static_cast<std::size_t>(index)];
    if (to_pairs.op != "reshape" || shape.size() < 2) continue;
    shape.pop_back();
    shape.back() = shape.back() * Dim(2);
    Node to_whole = to_pairs;
    to_whole.attributes.set("shape", shape);
    to_whole.outputs = {graph.add_value({DType::F32, shape})};
    to_pairs.inputs = to_whole.outputs;
    added.emplace_back(index, std::move(to_whole));
  }
  insert_before(graph, std::move(added));
}

}  // namespace

Status fuse_rope(Graph& graph, const PassContext& context) {
  restore_whole(graph);
  return fuse_matches(graph, "rope", match_rope_at, context);
}

}  // namespace hone
