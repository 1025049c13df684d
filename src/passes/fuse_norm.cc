#include "passes/fuse_norm.h"

#include <cmath>

#include "passes/match.h"

namespace hone {
namespace {

// The x of x * x or x^2.
std::optional<ValueId> match_square(Pattern& pattern, ValueId value) {
  if (const Node* product = pattern.take(value, "mul")) {
    if (product->inputs[0] == product->inputs[1]) return product->inputs[0];
    return std::nullopt;
  }
  const Node* power = pattern.take(value, "pow");
  if (power != nullptr && pattern.is_scalar(power->inputs[1], 2)) return power->inputs[0];
  return std::nullopt;
}

// The sum along the last axis of x^2.
std::optional<ValueId> match_sum(Pattern& pattern, ValueId value, std::string_view op) {
  const Node* sum = pattern.take(value, op);
  if (sum == nullptr || !reduces_last_axis(pattern.graph(), *sum)) return std::nullopt;
  return match_square(pattern, sum->inputs[0]);
}

// x of mean(x^2): a mean, or a sum divided by the extent.
std::optional<ValueId> match_mean_square(Pattern& pattern, ValueId value) {
  if (pattern.look(value, "reduce_mean") != nullptr) return match_sum(pattern, value, "reduce_mean");
  const Node* product = pattern.take(value, "mul");
  const Node* quotient = product == nullptr ? pattern.take(value, "div") : nullptr;
  if (quotient != nullptr) {
    const std::optional<double> divisor = pattern.scalar(quotient->inputs[1]);
    const std::optional<ValueId> x = match_sum(pattern, quotient->inputs[0], "reduce_sum");
    if (!x || !divisor) return std::nullopt;
    const std::optional<std::int64_t> extent = last_extent(pattern.shape(*x));
    return extent && *divisor == static_cast<double>(*extent) ? x : std::nullopt;
  }
  if (product == nullptr) return std::nullopt;
  for (const auto& [sum, number] : both_orders(*product)) {
    const std::optional<double> factor = pattern.scalar(number);
    if (!factor) continue;
    const std::optional<ValueId> x = match_sum(pattern, sum, "reduce_sum");
    if (!x) return std::nullopt;
    // The constant is an f32: what matters is the value that it rounds to.
    const std::optional<std::int64_t> extent = last_extent(pattern.shape(*x));
    const bool is_mean =
        extent && static_cast<float>(*factor) == static_cast<float>(1.0 / static_cast<double>(*extent));
    return is_mean ? x : std::nullopt;
  }
  return std::nullopt;
}

struct Norm {
  ValueId x = -1;
  double eps = 0;
};

// mean(x^2) + eps.
std::optional<Norm> match_radicand(Pattern& pattern, ValueId value) {
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return std::nullopt;
  for (const auto& [mean, number] : both_orders(*sum)) {
    const std::optional<double> eps = pattern.scalar(number);
    if (!eps) continue;
    const std::optional<ValueId> x = match_mean_square(pattern, mean);
    if (!x || !(*eps >= 0) || std::isinf(*eps)) return std::nullopt;
    return Norm{*x, *eps};
  }
  return std::nullopt;
}

// 1 / sqrt(mean(x^2) + eps).
std::optional<Norm> match_inverse_root(Pattern& pattern, ValueId value) {
  if (const Node* root = pattern.take(value, "rsqrt")) return match_radicand(pattern, root->inputs[0]);
  const Node* quotient = pattern.take(value, "div");
  if (quotient == nullptr || !pattern.is_scalar(quotient->inputs[0], 1)) return std::nullopt;
  const Node* root = pattern.take(quotient->inputs[1], "sqrt");
  return root == nullptr ? std::nullopt : match_radicand(pattern, root->inputs[0]);
}

// x times, or over, the root.
std::optional<Norm> match_normalised(const Pattern& before, Pattern& pattern, ValueId value) {
  if (const Node* quotient = before.look(value, "div")) {
    pattern = before;
    pattern.take(value, "div");
    const Node* root = pattern.take(quotient->inputs[1], "sqrt");
    const std::optional<Norm> norm =
        root == nullptr ? std::nullopt : match_radicand(pattern, root->inputs[0]);
    if (norm && norm->x == quotient->inputs[0]) return norm;
    return std::nullopt;
  }
  const Node* product = before.look(value, "mul");
  if (product == nullptr) return std::nullopt;
  for (const auto& [x, root] : both_orders(*product)) {
    pattern = before;
    pattern.take(value, "mul");
    const std::optional<Norm> norm = match_inverse_root(pattern, root);
    if (norm && norm->x == x) return norm;
  }
  return std::nullopt;
}

struct Factor {
  ValueId weight = -1;
  double offset = 0;
};

// Takes offset + w apart, as Gemma's norms multiply by 1 + w.
Factor without_offset(const Pattern& pattern, ValueId value) {
  const Node* sum = pattern.look(value, "add");
  if (sum == nullptr) return {value, 0};
  for (const auto& [weight, number] : both_orders(*sum)) {
    const std::optional<double> offset = pattern.scalar(number);
    if (offset && std::isfinite(*offset) && pattern.type(weight) == pattern.type(value))
      return {weight, *offset};
  }
  return {value, 0};
}

// The weight f32 [D] behind a factor of x, along whose last axis it moves.
std::optional<ValueId> find_weight(const Graph& graph, const UseMap& uses, ValueId factor, const Type& x) {
  AxisPath path(graph, uses, factor, x.shape.size());
  do {
    const Type& type = graph.type(path.value());
    const bool fits =
        type.dtype == DType::F32 && type.shape.size() == 1 && type.shape.back() == x.shape.back();
    if (fits && path.moves(x.shape.size() - 1, 0)) return path.value();
  } while (path.step());
  return std::nullopt;
}

std::optional<Match> match_norm_at(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "mul") return std::nullopt;
  Pattern before(graph, uses);
  before.take(last.outputs[0], "mul");
  for (const auto& [normalised, factor] : both_orders(last)) {
    Pattern pattern = before;
    const std::optional<Norm> norm = match_normalised(before, pattern, normalised);
    if (!norm || !(graph.type(norm->x) == graph.type(last.outputs[0]))) continue;
    const Type& type = graph.type(norm->x);
    if (type.dtype != DType::F32 || type.shape.empty()) continue;
    const std::optional<ValueId> weight = find_weight(graph, uses, factor, type);
    if (!weight) continue;
    const Factor factor_of = without_offset(pattern, *weight);
    Match found{pattern.nodes(), {norm->x, factor_of.weight}, last.outputs[0], {{"eps", norm->eps}}};
    if (factor_of.offset != 0) found.attributes.set("offset", factor_of.offset);
    return found;
  }
  return std::nullopt;
}

// d = x - mean(x): the x.
std::optional<ValueId> match_centred(Pattern& pattern, ValueId value) {
  const Node* difference = pattern.take(value, "sub");
  if (difference == nullptr) return std::nullopt;
  const ValueId x = difference->inputs[0];
  const Node* mean = pattern.take(difference->inputs[1], "reduce_mean");
  const bool matches = mean != nullptr && reduces_last_axis(pattern.graph(), *mean) && mean->inputs[0] == x;
  return matches ? std::optional(x) : std::nullopt;
}

std::optional<Match> match_layer_norm_at(const Graph& graph, const UseMap& uses, int node) {
  const Node& last = graph.nodes[static_cast<std::size_t>(node)];
  if (last.op != "add") return std::nullopt;
  for (const auto& [product, summand] : both_orders(last)) {
    Pattern with_sum(graph, uses);
    with_sum.take(last.outputs[0], "add");
    const Node* scaled = with_sum.take(product, "mul");
    if (scaled == nullptr) continue;
    for (const auto& [normalised, factor] : both_orders(*scaled)) {
      Pattern pattern = with_sum;
      const std::optional<Norm> norm = match_normalised(with_sum, pattern, normalised);
      if (!norm) continue;
      const std::optional<ValueId> x = match_centred(pattern, norm->x);
      if (!x || !(graph.type(*x) == graph.type(last.outputs[0])) || graph.type(*x).dtype != DType::F32)
        continue;
      const std::optional<ValueId> weight = find_weight(graph, uses, factor, graph.type(*x));
      const std::optional<ValueId> bias = find_weight(graph, uses, summand, graph.type(*x));
      if (!weight || !bias) continue;
      return Match{pattern.nodes(), {*x, *weight, *bias}, last.outputs[0], {{"eps", norm->eps}}};
    }
  }
  return std::nullopt;
}

}  // namespace

Status fuse_norm(Graph& graph, const PassContext& context) {
  // First: without its sum and its centre it is an rms_norm.
  HONE_TRY(fuse_matches(graph, "layer_norm", match_layer_norm_at, context));
  return fuse_matches(graph, "rms_norm", match_norm_at, context);
}

}  // namespace hone
