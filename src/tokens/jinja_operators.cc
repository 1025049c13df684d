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
  if (depth_ >= 8 * fuel_.depth) return source_.error(expr.offset, "calls are nested too deeply");
  ++depth_;
  Result<Value> out = evaluate_deeper(expr);
  --depth_;
  return out;
}

Result<Value> Evaluator::evaluate_literal(const Expr& expr) {
  if (expr.kind == ExprKind::String) return Value::string(expr.text);
  if (expr.kind == ExprKind::Float) return Value::real(expr.real);
  if (expr.text.empty()) return Value::integer(expr.integer);
  const auto big = BigInteger::parse(expr.text);
  return big ? Result<Value>(Value::integer(*big)) : internal_error("template", "a literal is no number");
}

Result<Value> Evaluator::evaluate_deeper(const Expr& expr) {
  const auto child = [&](std::size_t i) { return evaluate(*expr.children[i]); };
  switch (expr.kind) {
    case ExprKind::None:
      return Value::none();
    case ExprKind::Boolean:
      return Value::boolean(expr.integer != 0);
    case ExprKind::Integer:
    case ExprKind::Float:
    case ExprKind::String:
      return evaluate_literal(expr);
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
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined.");
    }
    case ExprKind::Attribute: {
      const Value object = HONE_TRY(child(0));
      return attribute(expr.offset, object, expr.text);
    }
    case ExprKind::Item: {
      const Value object = HONE_TRY(child(0));
      const Value index = HONE_TRY(child(1));
      return item(expr.offset, object, index);
    }
    case ExprKind::Slice:
      return evaluate_slice(expr);
    case ExprKind::Call:
      return evaluate_call(expr, nullptr);
    case ExprKind::Captured:
      return captured_;
    case ExprKind::Star:
    case ExprKind::DoubleStar:
      break;
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
    const Expr& child = *expr.children[i];
    const bool star = child.kind == ExprKind::Star;
    if (star || child.kind == ExprKind::DoubleStar) {
      const Value many = HONE_TRY(evaluate(*child.children[0]));
      if (star) {
        HONE_TRY(require_defined(child.offset, many));
        const Value::ListPtr items = HONE_TRY(iterate(child.offset, many));
        out.positional.insert(out.positional.end(), items->items.begin(), items->items.end());
        continue;
      }
      const Dict* dict = many.as_dict();
      if (dict == nullptr) return error(child.offset, "argument after ** must be a mapping");
      HONE_TRY(charge(child.offset, 16 * static_cast<std::uint64_t>(dict->items.size())));
      out.named.insert(out.named.end(), dict->items.begin(), dict->items.end());
      continue;
    }
    Value value = HONE_TRY(evaluate(child));
    if (i < named) {
      out.positional.push_back(std::move(value));
    } else {
      out.named.emplace_back(expr.words[i - named], std::move(value));
    }
  }
  HONE_TRY(charge(expr.offset, out.named.size() * out.named.size()));
  for (std::size_t i = 0; i < out.named.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (out.named[i].first != out.named[j].first) continue;
      return error(expr.offset, fmt::format("keyword argument repeated: {}", out.named[i].first));
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
  const auto integer = value.any_integral();
  if (!integer) {
    return error(expr.offset,
                 fmt::format("bad operand type for unary {}: '{}'", negate ? '-' : '+', value.type_name()));
  }
  return Value::integer(negate ? integer->negated() : *integer);
}

Result<Value> Evaluator::evaluate_concat(const Expr& expr) {
  std::string out;
  for (const ExprPtr& child : expr.children) {
    const Value value = HONE_TRY(evaluate(*child));
    out += HONE_TRY(text_of(expr.offset, value));
    HONE_TRY(check_size(expr.offset, out.size()));
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
    const std::string* part = item.as_string() != nullptr ? item.as_string() : item.as_markup();
    if (part == nullptr) {
      return error(offset,
                   fmt::format("'in <string>' requires string as left operand, not {}", item.type_name()));
    }
    HONE_TRY(charge(offset, part->size()));
    return find_text(*text, *part) != std::string_view::npos;
  }
  if (const Dict* dict = container.as_dict()) {
    if (item.as_list() != nullptr || item.as_dict() != nullptr) {
      return error(offset, fmt::format("unhashable type: '{}'", item.type_name()));
    }
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
  if (!ordered && (a.is_number() || a.as_list() != nullptr) && a.type_name() == b.type_name()) {
    return unsupported(offset, fmt::format("'{}' between these values", op));
  }
  if (!ordered) {
    return error(offset, fmt::format("'{}' not supported between instances of '{}' and '{}'", op,
                                     a.type_name(), b.type_name()));
  }
  if (op == "<") return *ordered < 0;
  if (op == "<=") return *ordered <= 0;
  if (op == ">") return *ordered > 0;
  return *ordered >= 0;
}

}  // namespace hone::jinja
