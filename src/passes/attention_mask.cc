#include "passes/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// tokens * p + keys * c + constant, where p is the token's position and c the key.
struct Linear {
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  std::int64_t constant = 0;
  ValueId positions = -1;
};

// a + sign * b; nullopt if they speak of different positions, or for constants no mask has.
std::optional<Linear> combine(const Linear& a, std::int64_t sign, const Linear& b) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 32;
  if (a.positions >= 0 && b.positions >= 0 && a.positions != b.positions) return std::nullopt;
  Linear sum{a.tokens + sign * b.tokens, a.keys + sign * b.keys, a.constant + sign * b.constant,
             std::max(a.positions, b.positions)};
  if (std::abs(sum.constant) > kLargest || std::abs(sum.tokens) > 2 || std::abs(sum.keys) > 2)
    return std::nullopt;
  return sum;
}

class MaskReader {
 public:
  // `scores` [B,K,G,T,C] or [B,H,T,C].
  MaskReader(const Pattern& pattern, const Shape& scores)
      : pattern_(pattern), rank_(scores.size()), keys_(scores.back()) {}

  // What `condition` leaves visible where it holds, or, negated, where it does not.
  std::optional<VisibleKeys> read(ValueId condition, bool negated) const {
    return read(pattern_.path(condition, rank_), negated, 0);
  }

 private:
  static constexpr int kDeepest = 8;

  std::optional<VisibleKeys> read(AxisPath path, bool negated, int depth) const {
    while (path.step()) {
    }
    const Node* node = path.producer();
    if (node == nullptr || depth > kDeepest) return std::nullopt;
    if (node->op == "not") {
      path.enter(node->inputs[0]);
      return read(path, !negated, depth + 1);
    }
    if (node->op == (negated ? "or" : "and")) return read_both(path, *node, negated, depth);
    const bool or_equal = node->op == "less_equal";
    if (!or_equal && node->op != "less") return std::nullopt;
    AxisPath left = path;
    AxisPath right = path;
    left.enter(node->inputs[0]);
    right.enter(node->inputs[1]);
    const std::optional<Linear> a = linear(left, depth + 1);
    const std::optional<Linear> b = linear(right, depth + 1);
    if (!a || !b) return std::nullopt;
    // a <= b is b - a >= 0, a < b is b - a - 1 >= 0; the negation of f >= 0 is -f - 1 >= 0.
    std::optional<Linear> f = negated ? combine(*a, -1, *b) : combine(*b, -1, *a);
    if (!f) return std::nullopt;
    if (or_equal == negated) --f->constant;
    return bound(*f);
  }

  std::optional<VisibleKeys> read_both(const AxisPath& path, const Node& node, bool negated,
                                       int depth) const {
    AxisPath left = path;
    AxisPath right = path;
    left.enter(node.inputs[0]);
    right.enter(node.inputs[1]);
    std::optional<VisibleKeys> a = read(left, negated, depth + 1);
    const std::optional<VisibleKeys> b = read(right, negated, depth + 1);
    if (!a || !b || !a->restrict_by(*b)) return std::nullopt;
    return a;
  }

  // The bound that f >= 0 is: p - c >= 0, or c - p + window - 1 >= 0.
  static std::optional<VisibleKeys> bound(const Linear& f) {
    if (f.tokens == 1 && f.keys == -1 && f.constant == 0) return VisibleKeys{f.positions, true, 0};
    if (f.tokens == -1 && f.keys == 1 && f.constant >= 0) {
      return VisibleKeys{f.positions, false, f.constant + 1};
    }
    return std::nullopt;
  }

  std::optional<Linear> linear(AxisPath path, int depth) const {
    const AxisPath start = path;
    while (path.step()) {
    }
    const Node* node = path.producer();
    if (node != nullptr && depth <= kDeepest) {
      if (node->op == "constant") return constant(path.value());
      if (node->op == "iota")
        return counts_keys(path, *node) ? std::optional(Linear{0, 1, 0, -1}) : std::nullopt;
      if (node->op == "add" || node->op == "sub") {
        AxisPath left = path;
        AxisPath right = path;
        left.enter(node->inputs[0]);
        right.enter(node->inputs[1]);
        const std::optional<Linear> a = linear(left, depth + 1);
        const std::optional<Linear> b = linear(right, depth + 1);
        return a && b ? combine(*a, node->op == "add" ? 1 : -1, *b) : std::nullopt;
      }
    }
    AxisPath tokens = start;
    const std::optional<ValueId> positions = rank_ == 5 ? tokens.find(2, {0, kRepeats, kRepeats, 1, kRepeats})
                                                        : tokens.find(2, {0, kRepeats, 1, kRepeats});
    if (!positions || pattern_.type(*positions).dtype != DType::I32) return std::nullopt;
    return Linear{1, 0, 0, *positions};
  }

  std::optional<Linear> constant(ValueId value) const {
    const std::optional<double> number = pattern_.scalar(value);
    if (!number || std::abs(*number) > 0x1p31 || *number != std::floor(*number)) return std::nullopt;
    return Linear{0, 0, static_cast<std::int64_t>(*number), -1};
  }

  // True if the path's value counts 0, 1, .. along the last axis of the scores.
  bool counts_keys(const AxisPath& path, const Node& iota) const {
    const Shape& shape = pattern_.shape(path.value());
    const std::int64_t given = iota.attributes.integer("axis");
    const std::int64_t axis = given < 0 ? given + static_cast<std::int64_t>(shape.size()) : given;
    return shape[static_cast<std::size_t>(axis)] == keys_ && path.moves(rank_ - 1, static_cast<int>(axis));
  }

  const Pattern& pattern_;
  std::size_t rank_;
  const Dim& keys_;
};

// select(condition, a, b) where one side is -inf: the other side, and what is visible.
std::optional<MaskedScores> match_select(const Pattern& pattern, const Node& select, const Shape& scores) {
  const bool hidden_first = pattern.is_scalar(select.inputs[1], kMinusInfinity);
  if (hidden_first == pattern.is_scalar(select.inputs[2], kMinusInfinity)) return std::nullopt;
  const std::optional<VisibleKeys> visible = MaskReader(pattern, scores).read(select.inputs[0], hidden_first);
  if (!visible) return std::nullopt;
  return MaskedScores{select.inputs[hidden_first ? 2 : 1], *visible};
}

}  // namespace

bool VisibleKeys::restrict_by(const VisibleKeys& other) {
  if (positions >= 0 && other.positions >= 0 && positions != other.positions) return false;
  positions = std::max(positions, other.positions);
  causal = causal || other.causal;
  if (window == 0 || (other.window > 0 && other.window < window)) window = other.window;
  return true;
}

std::optional<MaskedScores> match_attention_mask(Pattern& pattern, ValueId value) {
  const Shape& shape = pattern.shape(value);
  if (shape.size() != 4 && shape.size() != 5) return std::nullopt;
  if (const Node* select = pattern.take(value, "select")) return match_select(pattern, *select, shape);
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return std::nullopt;
  for (const auto& [scores, mask] : both_orders(*sum)) {
    const Node* select = pattern.look(mask, "select");
    if (select == nullptr) continue;
    const std::optional<MaskedScores> zero_or_hidden = match_select(pattern, *select, shape);
    if (zero_or_hidden && pattern.is_scalar(zero_or_hidden->scores, 0)) {
      return MaskedScores{scores, zero_or_hidden->visible};
    }
  }
  return std::nullopt;
}

}  // namespace hone
