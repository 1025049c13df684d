// Expressions: literals, operators, comparisons.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_strings.h"

namespace hone::jinja {

Result<Value> Evaluator::evaluate(const Expr& expr) {
  HONE_TRY(charge(expr.offset, expr.text.size()));
  const auto child = [&](std::size_t i) { return evaluate(*expr.children[i]); };
  switch (expr.kind) {
    case ExprKind::None:
      return Value::none();
    case ExprKind::Boolean:
      return Value::boolean(expr.integer != 0);
    case ExprKind::Integer:
      return Value::integer(expr.integer);
    case ExprKind::Float:
      return Value::real(expr.real);
    case ExprKind::String:
      return Value::string(expr.text);
    case ExprKind::Name:
      return evaluate_name(expr);
    case ExprKind::List:
    case ExprKind::Tuple:
      return evaluate_sequence(expr);
    case ExprKind::Dict:
      return evaluate_dict(expr);
    case ExprKind::Negate:
    case ExprKind::Positive:
      return evaluate_sign(expr);
    case ExprKind::Not:
      return Value::boolean(!HONE_TRY(child(0)).truth());
    case ExprKind::And:
    case ExprKind::Or: {
      Value left = HONE_TRY(child(0));
      return left.truth() == (expr.kind == ExprKind::Or) ? Result<Value>(std::move(left)) : child(1);
    }
    case ExprKind::Binary: {
      const Value left = HONE_TRY(child(0));
      const Value right = HONE_TRY(child(1));
      return binary(expr.offset, expr.text, left, right);
    }
    case ExprKind::Concat:
      return evaluate_concat(expr);
    case ExprKind::Compare:
      return evaluate_compare(expr);
    case ExprKind::InlineIf: {
      if (HONE_TRY(child(0)).truth()) return child(1);
      if (expr.children[2]) return child(2);
      return Value::undefined("the inline if has no else");
    }
    case ExprKind::Attribute:
      return evaluate_attribute(expr);
    case ExprKind::Item:
      return evaluate_item(expr);
    case ExprKind::Slice:
      return evaluate_slice(expr);
    case ExprKind::Call:
      return evaluate_call(expr);
    case ExprKind::Filter: {
      const Value input = HONE_TRY(child(0));
      const Arguments arguments = HONE_TRY(evaluate_arguments(expr));
      return apply_filter(*this, expr.offset, expr.text, input, arguments);
    }
    case ExprKind::Test: {
      const Value input = HONE_TRY(child(0));
      const Arguments arguments = HONE_TRY(evaluate_arguments(expr));
      const bool holds = HONE_TRY(apply_test(*this, expr.offset, expr.text, input, arguments));
      return Value::boolean(holds != (expr.integer != 0));
    }
  }
  return internal_error("template", "an expression of unknown kind");
}

Result<Arguments> Evaluator::evaluate_arguments(const Expr& expr) {
  Arguments out;
  const std::size_t named = expr.children.size() - expr.words.size();
  for (std::size_t i = 1; i < expr.children.size(); ++i) {
    Value value = HONE_TRY(evaluate(*expr.children[i]));
    if (i < named) {
      out.positional.push_back(std::move(value));
    } else {
      out.named.emplace_back(expr.words[i - named], std::move(value));
    }
  }
  return out;
}

Result<Value> Evaluator::evaluate_sequence(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.children.size());
  for (const ExprPtr& child : expr.children) items.push_back(HONE_TRY(evaluate(*child)));
  return bounded(expr.offset,
                 make_list(expr.kind == ExprKind::List ? Shape::List : Shape::Tuple, std::move(items)));
}

Result<Value> Evaluator::evaluate_dict(const Expr& expr) {
  std::vector<std::pair<std::string, Value>> items;
  for (std::size_t i = 0; i + 1 < expr.children.size(); i += 2) {
    const Value key = HONE_TRY(evaluate(*expr.children[i]));
    Value value = HONE_TRY(evaluate(*expr.children[i + 1]));
    const std::string* text = key.as_string();
    if (text == nullptr)
      return unsupported(expr.offset, fmt::format("a mapping key of type {}", key.type_name()));
    HONE_TRY(charge(expr.offset, items.size()));
    const auto same =
        std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == *text; });
    if (same == items.end()) {
      items.emplace_back(*text, std::move(value));
    } else {
      same->second = std::move(value);
    }
  }
  return bounded(expr.offset, make_dict(std::move(items)));
}

Result<Value> Evaluator::evaluate_sign(const Expr& expr) {
  const Value value = HONE_TRY(evaluate(*expr.children[0]));
  HONE_TRY(require_defined(expr.offset, value));
  const bool negate = expr.kind == ExprKind::Negate;
  if (const double* real = value.as_real()) return Value::real(negate ? -*real : *real);
  const auto integer = value.integral();
  if (!integer) {
    return error(expr.offset,
                 fmt::format("bad operand type for unary {}: '{}'", negate ? '-' : '+', value.type_name()));
  }
  std::int64_t out = *integer;
  if (negate && __builtin_sub_overflow(std::int64_t{0}, *integer, &out)) {
    return unsupported(expr.offset, "an integer beyond 64 bits");
  }
  return Value::integer(out);
}

Result<Value> Evaluator::evaluate_concat(const Expr& expr) {
  std::string out;
  for (const ExprPtr& child : expr.children) {
    const Value value = HONE_TRY(evaluate(*child));
    out += HONE_TRY(text_of(expr.offset, value));
  }
  return bounded(expr.offset, Value::string(std::move(out)));
}

Result<Value> Evaluator::evaluate_compare(const Expr& expr) {
  // a < b < c is (a < b) and (b < c) with b evaluated once.
  Value left = HONE_TRY(evaluate(*expr.children[0]));
  for (std::size_t i = 0; i < expr.words.size(); ++i) {
    Value right = HONE_TRY(evaluate(*expr.children[i + 1]));
    if (!HONE_TRY(compare(expr.offset, expr.words[i], left, right))) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<bool> Evaluator::contains(std::uint32_t offset, const Value& container, const Value& item) {
  HONE_TRY(charge_weight(offset, container));
  if (const std::string* text = container.as_string()) {
    HONE_TRY(require_defined(offset, item));
    const std::string* part = item.as_string();
    if (part == nullptr) {
      return error(offset,
                   fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    HONE_TRY(charge(offset, part->size()));
    return find_text(*text, *part) != std::string_view::npos;
  }
  if (const Dict* dict = container.as_dict()) {
    return item.as_string() != nullptr && dict->find(*item.as_string()) != nullptr;
  }
  const Value::ListPtr items = HONE_TRY(iterate(offset, container));
  for (const Value& other : items->items) {
    const auto same = equal(other, item);
    if (!same) return unsupported(offset, "comparing these values");
    if (*same) return true;
  }
  return false;
}

namespace {

// -1, 0, 1 by Python's order; nullopt where Python has none.
std::optional<int> order(const Value& a, const Value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.integral() && b.integral()) return sign(*a.integral(), *b.integral());
  if (a.as_string() != nullptr && b.as_string() != nullptr) return sign(*a.as_string(), *b.as_string());
  if (!a.number() || !b.number() || std::isnan(*a.number()) || std::isnan(*b.number())) return std::nullopt;
  const auto exact = [](const Value& v) {
    return v.integral() ? static_cast<long double>(*v.integral()) : static_cast<long double>(*v.as_real());
  };
  return sign(exact(a), exact(b));
}

}  // namespace

Result<bool> Evaluator::compare(std::uint32_t offset, std::string_view op, const Value& a, const Value& b) {
  if (op == "in") return contains(offset, b, a);
  if (op == "not in") return !HONE_TRY(contains(offset, b, a));
  HONE_TRY(charge(offset, static_cast<std::uint64_t>(std::min(a.weight(), b.weight()))));
  if (op == "==" || op == "!=") {
    const auto same = equal(a, b);
    if (!same) return unsupported(offset, "comparing these values");
    return *same == (op == "==");
  }
  HONE_TRY(require_defined(offset, a));
  HONE_TRY(require_defined(offset, b));
  const auto ordered = order(a, b);
  if (!ordered) {
    return unsupported(offset, fmt::format("'{}' between '{}' and '{}'", op, a.type_name(), b.type_name()));
  }
  if (op == "<") return *ordered < 0;
  if (op == "<=") return *ordered <= 0;
  if (op == ">") return *ordered > 0;
  return *ordered >= 0;
}

namespace {

Result<Value> integer_binary(const Evaluator& evaluator, std::uint32_t offset, std::string_view op,
                             std::int64_t a, std::int64_t b) {
  const auto too_large = [&] { return evaluator.unsupported(offset, "an integer beyond 64 bits"); };
  std::int64_t out = 0;
  if (op == "+") return __builtin_add_overflow(a, b, &out) ? Result<Value>(too_large()) : Value::integer(out);
  if (op == "-") return __builtin_sub_overflow(a, b, &out) ? Result<Value>(too_large()) : Value::integer(out);
  if (op == "*") return __builtin_mul_overflow(a, b, &out) ? Result<Value>(too_large()) : Value::integer(out);
  if (op == "**") {
    if (b < 0) return evaluator.unsupported(offset, "a negative power");
    out = 1;
    // |a| >= 2 leaves 64 bits within 63 rounds; 0 and 1 stay as they are, -1 alternates.
    const std::int64_t rounds = a >= -1 && a <= 1 ? (b == 0 ? 0 : 2 - b % 2) : b;
    for (std::int64_t i = 0; i < rounds; ++i) {
      if (__builtin_mul_overflow(out, a, &out)) return too_large();
    }
    return Value::integer(out);
  }
  if (b == 0) return evaluator.error(offset, "division by zero");
  if (op == "/") {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;
    if (a > kExact || a < -kExact || b > kExact || b < -kExact) return too_large();
    return Value::real(static_cast<double>(a) / static_cast<double>(b));
  }
  if (b == -1)
    return op == "%" ? Result<Value>(Value::integer(0)) : integer_binary(evaluator, offset, "-", 0, a);
  // Python rounds the quotient down, so the remainder has the sign of the divisor.
  const std::int64_t remainder = a % b;
  const bool below = remainder != 0 && (remainder < 0) != (b < 0);
  return Value::integer(op == "%" ? remainder + (below ? b : 0) : a / b - (below ? 1 : 0));
}

Result<Value> real_binary(const Evaluator& evaluator, std::uint32_t offset, std::string_view op, double a,
                          double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op != "/") return evaluator.unsupported(offset, fmt::format("'{}' of floats", op));
  if (b == 0.0) return evaluator.error(offset, "float division by zero");
  return Value::real(a / b);
}

}  // namespace

Result<Value> Evaluator::binary(std::uint32_t offset, std::string_view op, const Value& a, const Value& b) {
  HONE_TRY(require_defined(offset, a));
  HONE_TRY(require_defined(offset, b));
  if (a.is_huge() || b.is_huge()) return unsupported(offset, "a number beyond 64 bits");
  if (a.integral() && b.integral()) return integer_binary(*this, offset, op, *a.integral(), *b.integral());
  if (a.number() && b.number()) return real_binary(*this, offset, op, *a.number(), *b.number());
  const std::string* text_a = a.as_string();
  const std::string* text_b = b.as_string();
  if (op == "+" && text_a != nullptr && text_b != nullptr) {
    HONE_TRY(charge(offset, text_a->size() + text_b->size()));
    return bounded(offset, Value::string(*text_a + *text_b));
  }
  const List* list_a = a.as_list();
  const List* list_b = b.as_list();
  if (op == "+" && list_a != nullptr && list_b != nullptr && list_a->shape == list_b->shape &&
      list_a->shape != Shape::View) {
    HONE_TRY(charge(offset, 16 * (list_a->items.size() + list_b->items.size())));
    std::vector<Value> items = list_a->items;
    items.insert(items.end(), list_b->items.begin(), list_b->items.end());
    return bounded(offset, make_list(list_a->shape, std::move(items)));
  }
  const auto count = text_a != nullptr ? b.integral() : a.integral();
  const std::string* repeated = text_a != nullptr ? text_a : text_b;
  if (op == "*" && repeated != nullptr && count) {
    const std::uint64_t times = *count > 0 ? static_cast<std::uint64_t>(*count) : 0;
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(times, repeated->size(), &bytes) ||
        bytes > static_cast<std::uint64_t>(fuel_.output_bytes)) {
      return error(offset, "a value is too large");
    }
    HONE_TRY(charge(offset, bytes));
    std::string out;
    out.reserve(bytes);
    for (std::uint64_t i = 0; bytes > 0 && i < times; ++i) out += *repeated;
    return Value::string(std::move(out));
  }
  if (op == "%" && text_a != nullptr) return unsupported(offset, "string formatting with '%'");
  if (op == "*" && (list_a != nullptr || list_b != nullptr)) return unsupported(offset, "'*' of a list");
  return error(offset, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, a.type_name(),
                                   b.type_name()));
}

}  // namespace hone::jinja
