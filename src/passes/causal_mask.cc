#include "passes/causal_mask.h"

#include <cmath>
#include <limits>

namespace hone {
namespace {

constexpr std::size_t kRank = 5;  // [B,K,G,T,C]
constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct Condition {
  ValueId positions = -1;
  bool visible = true;  // the condition holds where the key is visible; else where it is hidden
};

// True if the path's value counts 0, 1, .. along the last axis of the scores, of extent `keys`.
bool counts_keys(const Pattern& pattern, AxisPath path, const Dim& keys) {
  while (path.step()) {
  }
  const Node* iota = path.producer();
  if (iota == nullptr || iota->op != "iota") return false;
  const Shape& shape = pattern.shape(path.value());
  const std::int64_t given = iota->attributes.integer("axis");
  const std::int64_t axis = given < 0 ? given + static_cast<std::int64_t>(shape.size()) : given;
  return shape[static_cast<std::size_t>(axis)] == keys && path.moves(kRank - 1, static_cast<int>(axis));
}

// c <= position, or position < c, possibly behind nots.
std::optional<Condition> match_condition(const Pattern& pattern, ValueId value, const Dim& keys) {
  AxisPath path = pattern.path(value, kRank);
  bool negated = false;
  while (true) {
    while (path.step()) {
    }
    const Node* node = path.producer();
    if (node == nullptr) return std::nullopt;
    if (node->op == "not") {
      negated = !negated;
      path.enter(node->inputs[0]);
      continue;
    }
    const bool visible = node->op == "less_equal";
    if (!visible && node->op != "less") return std::nullopt;
    AxisPath key_path = path;
    AxisPath tokens = path;
    key_path.enter(node->inputs[visible ? 0 : 1]);
    tokens.enter(node->inputs[visible ? 1 : 0]);
    if (!counts_keys(pattern, key_path, keys)) return std::nullopt;
    const std::optional<ValueId> positions = tokens.find(2, {0, kRepeats, kRepeats, 1, kRepeats});
    if (!positions) return std::nullopt;
    return Condition{*positions, visible != negated};
  }
}

// select(condition, a, b) where the hidden side is -inf: the other side, and the positions.
std::optional<MaskedScores> match_select(const Pattern& pattern, const Node& select, const Dim& keys) {
  const std::optional<Condition> condition = match_condition(pattern, select.inputs[0], keys);
  if (!condition) return std::nullopt;
  const ValueId shown = select.inputs[condition->visible ? 1 : 2];
  const ValueId hidden = select.inputs[condition->visible ? 2 : 1];
  if (!pattern.is_scalar(hidden, kMinusInfinity)) return std::nullopt;
  return MaskedScores{shown, condition->positions};
}

}  // namespace

std::optional<MaskedScores> match_causal_mask(Pattern& pattern, ValueId value) {
  if (pattern.shape(value).size() != kRank) return std::nullopt;
  const Dim& keys = pattern.shape(value).back();
  if (const Node* select = pattern.take(value, "select")) return match_select(pattern, *select, keys);
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return std::nullopt;
  for (const auto& [scores, mask] : both_orders(*sum)) {
    const Node* select = pattern.look(mask, "select");
    if (select == nullptr) continue;
    const std::optional<MaskedScores> zero_or_hidden = match_select(pattern, *select, keys);
    if (zero_or_hidden && pattern.is_scalar(zero_or_hidden->scores, 0)) {
      return MaskedScores{scores, zero_or_hidden->positions};
    }
  }
  return std::nullopt;
}

}  // namespace hone
