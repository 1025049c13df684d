#include "passes/activation.h"

#include <cmath>
#include <numbers>

namespace hone {
namespace {

// True if `value` is 1 + exp(-gate).
bool is_one_plus_exp_of_minus(Pattern& pattern, ValueId value, ValueId gate) {
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return false;
  for (const auto& [exponential, one] : both_orders(*sum)) {
    if (!pattern.is_scalar(one, 1)) continue;
    const Node* exp = pattern.take(exponential, "exp");
    const Node* minus = exp == nullptr ? nullptr : pattern.take(exp->inputs[0], "neg");
    return minus != nullptr && minus->inputs[0] == gate;
  }
  return false;
}

bool is_float(const Pattern& pattern, ValueId value, double number) {
  const std::optional<double> found = pattern.scalar(value);
  return found && static_cast<float>(*found) == static_cast<float>(number);
}

// The other factor of a product with the number, rounded to f32.
std::optional<ValueId> times(Pattern& pattern, ValueId value, double number) {
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return std::nullopt;
  for (const auto& [x, factor] : both_orders(*product)) {
    if (is_float(pattern, factor, number)) return x;
  }
  return std::nullopt;
}

// True if `value` is z^3.
bool is_cube(Pattern& pattern, ValueId value, ValueId z) {
  if (const Node* power = pattern.take(value, "pow")) {
    return power->inputs[0] == z && pattern.is_scalar(power->inputs[1], 3);
  }
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return false;
  for (const auto& [square, last] : both_orders(*product)) {
    if (last != z) continue;
    const Node* factors = pattern.take(square, "mul");
    return factors != nullptr && factors->inputs[0] == z && factors->inputs[1] == z;
  }
  return false;
}

// True if `value` is 1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)).
bool is_gelu_factor(Pattern& pattern, ValueId value, ValueId z) {
  const Node* sum = pattern.take(value, "add");
  if (sum == nullptr) return false;
  for (const auto& [bounded, one] : both_orders(*sum)) {
    if (!pattern.is_scalar(one, 1)) continue;
    const Node* tanh = pattern.take(bounded, "tanh");
    const std::optional<ValueId> inner =
        tanh == nullptr ? std::nullopt : times(pattern, tanh->inputs[0], std::sqrt(2 * std::numbers::inv_pi));
    const Node* cubic = inner ? pattern.take(*inner, "add") : nullptr;
    if (cubic == nullptr) return false;
    for (const auto& [linear, scaled] : both_orders(*cubic)) {
      if (linear != z) continue;
      const std::optional<ValueId> cube = times(pattern, scaled, 0.044715);
      return cube && is_cube(pattern, *cube, z);
    }
    return false;
  }
  return false;
}

}  // namespace

std::optional<ValueId> match_silu(Pattern& pattern, ValueId value) {
  if (const Node* quotient = pattern.take(value, "div")) {
    const ValueId z = quotient->inputs[0];
    return is_one_plus_exp_of_minus(pattern, quotient->inputs[1], z) ? std::optional(z) : std::nullopt;
  }
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return std::nullopt;
  for (const auto& [z, sigmoid] : both_orders(*product)) {
    Pattern attempt = pattern;
    const Node* quotient = attempt.take(sigmoid, "div");
    if (quotient == nullptr || !attempt.is_scalar(quotient->inputs[0], 1)) continue;
    if (!is_one_plus_exp_of_minus(attempt, quotient->inputs[1], z)) continue;
    pattern = attempt;
    return z;
  }
  return std::nullopt;
}

std::optional<ValueId> match_gelu(Pattern& pattern, ValueId value) {
  const Node* product = pattern.take(value, "mul");
  if (product == nullptr) return std::nullopt;
  for (const auto& [half, factor] : both_orders(*product)) {
    Pattern attempt = pattern;
    const std::optional<ValueId> z = times(attempt, half, 0.5);
    if (!z || !is_gelu_factor(attempt, factor, *z)) continue;
    pattern = attempt;
    return z;
  }
  return std::nullopt;
}

}  // namespace hone
