// The operators + - * / // % ** by Python's rules.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_strings.h"

namespace hone::jinja {

namespace {

// Longer integers are refused: 19,000 digits, five times what Python prints.
constexpr std::size_t kMostBits = 65536;

Error too_long(const Evaluator& evaluator, std::uint32_t offset) {
  return evaluator.error(offset, fmt::format("an integer has more than {} bits", kMostBits));
}

Result<Value> integer_power(Evaluator& evaluator, std::uint32_t offset, const BigInteger& a,
                            const BigInteger& b) {
  if (b.is_negative()) {
    if (a.is_zero()) return evaluator.error(offset, "0.0 cannot be raised to a negative power");
    const double out = std::pow(a.to_double(), b.to_double());
    return Value::real(out);
  }
  // 0, 1 and -1 stay small under any exponent.
  if (a.bits() <= 1) {
    const auto exponent = b.small();
    const bool even = exponent ? *exponent % 2 == 0 : b.text(2).back() == '0';
    if (b.is_zero()) return Value::integer(1);
    return Value::integer(a.is_zero() ? 0 : (a.is_negative() && !even ? -1 : 1));
  }
  const auto exponent = b.small();
  if (!exponent || static_cast<std::uint64_t>(*exponent) > kMostBits ||
      (a.bits() - 1) * static_cast<std::uint64_t>(*exponent) > kMostBits) {
    return too_long(evaluator, offset);
  }
  const std::uint64_t words = a.bits() * static_cast<std::uint64_t>(*exponent) / 32 + 1;
  HONE_TRY(evaluator.charge(offset, words * words));
  return Value::integer(BigInteger::power(a, static_cast<std::uint64_t>(*exponent)));
}

Result<Value> integer_binary(Evaluator& evaluator, std::uint32_t offset, std::string_view op, const Value& x,
                             const Value& y) {
  const auto small_a = x.integral();
  const auto small_b = y.integral();
  if (small_a && small_b) {
    std::int64_t out = 0;
    if (op == "+" && !__builtin_add_overflow(*small_a, *small_b, &out)) return Value::integer(out);
    if (op == "-" && !__builtin_sub_overflow(*small_a, *small_b, &out)) return Value::integer(out);
    if (op == "*" && !__builtin_mul_overflow(*small_a, *small_b, &out)) return Value::integer(out);
  }
  const BigInteger a = *x.any_integral();
  const BigInteger b = *y.any_integral();
  if (op == "**") return integer_power(evaluator, offset, a, b);
  HONE_TRY(evaluator.charge(offset, (a.bits() / 32 + 1) * (op == "+" || op == "-" ? 1 : b.bits() / 32 + 1)));
  HONE_TRY(evaluator.charge(offset, 2 * (a.bits() + b.bits())));
  BigInteger out;
  if (op == "+") {
    out = a + b;
  } else if (op == "-") {
    out = a - b;
  } else if (op == "*") {
    out = a * b;
  } else {
    if (b.is_zero()) return evaluator.error(offset, "division by zero");
    if (op == "/") {
      const double quotient = BigInteger::true_divide(a, b);
      if (std::isinf(quotient))
        return evaluator.error(offset, "integer division result too large for a float");
      return Value::real(quotient);
    }
    BigInteger remainder;
    BigInteger::divide(a, b, out, remainder);
    if (op == "%") out = remainder;
  }
  if (out.bits() > kMostBits) return too_long(evaluator, offset);
  return Value::integer(std::move(out));
}

// CPython's float_divmod: the remainder by fmod, moved to the divisor's sign.
void float_divmod(double a, double b, double& quotient, double& remainder) {
  remainder = std::fmod(a, b);
  double div = (a - remainder) / b;
  if (remainder != 0.0) {
    if ((b < 0) != (remainder < 0)) {
      remainder += b;
      div -= 1.0;
    }
  } else {
    remainder = std::copysign(0.0, b);
  }
  if (div != 0.0) {
    quotient = std::floor(div);
    if (div - quotient > 0.5) quotient += 1.0;
  } else {
    quotient = std::copysign(0.0, a / b);
  }
}

Result<Value> real_binary(const Evaluator& evaluator, std::uint32_t offset, std::string_view op, double a,
                          double b) {
  if (op == "+") return Value::real(a + b);
  if (op == "-") return Value::real(a - b);
  if (op == "*") return Value::real(a * b);
  if (op == "**") {
    if (a == 0.0 && b < 0.0) return evaluator.error(offset, "0.0 cannot be raised to a negative power");
    if (a < 0.0 && std::isfinite(a) && std::isfinite(b) && b != std::floor(b)) {
      return evaluator.unsupported(offset, "a complex number");
    }
    const double out = std::pow(a, b);
    if (std::isinf(out) && std::isfinite(a) && std::isfinite(b)) {
      return evaluator.error(offset, "Numerical result out of range");
    }
    return Value::real(out);
  }
  if (b == 0.0) return evaluator.error(offset, op == "/" ? "float division by zero" : "float modulo by zero");
  if (op == "/") return Value::real(a / b);
  double quotient = 0.0;
  double remainder = 0.0;
  float_divmod(a, b, quotient, remainder);
  return Value::real(op == "%" ? remainder : quotient);
}

// `sequence * count` of a string, list or tuple.
Result<Value> repeat(Evaluator& evaluator, std::uint32_t offset, const Value& sequence, const Value& count) {
  const BigInteger wanted = *count.any_integral();
  const auto size = static_cast<std::uint64_t>(sequence.weight());
  std::uint64_t times = 0;
  if (!wanted.is_negative() && sequence.size() > 0) {
    const auto small = wanted.small();
    std::uint64_t bytes = 0;
    if (!small || __builtin_mul_overflow(static_cast<std::uint64_t>(*small), size, &bytes)) {
      return evaluator.error(offset, "a value is too large");
    }
    HONE_TRY(evaluator.check_size(offset, bytes));
    HONE_TRY(evaluator.charge(offset, bytes));
    times = static_cast<std::uint64_t>(*small);
  }
  if (const std::string* text = sequence.as_string()) {
    std::string out;
    out.reserve(times * text->size());
    for (std::uint64_t i = 0; i < times; ++i) out += *text;
    return Value::string(std::move(out));
  }
  const List& list = *sequence.as_list();
  std::vector<Value> items;
  items.reserve(times * list.items.size());
  for (std::uint64_t i = 0; i < times; ++i) {
    HONE_TRY(evaluator.charge(offset, 16 * list.items.size()));
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_list(list.is_tuple() ? Shape::Tuple : Shape::List, std::move(items));
}

bool is_repeatable(const Value& value) {
  const List* list = value.as_list();
  return value.as_string() != nullptr ||
         (list != nullptr && (list->shape == Shape::List || list->is_tuple()));
}

}  // namespace

Result<Value> Evaluator::binary(std::uint32_t offset, std::string_view op, const Value& a, const Value& b) {
  const std::string* text_a = a.as_string();
  if (op == "%" && text_a != nullptr) return format_percent(Call{*this, offset, "'%'"}, *text_a, b);
  HONE_TRY(require_defined(offset, a));
  HONE_TRY(require_defined(offset, b));
  if (a.as_markup() != nullptr || b.as_markup() != nullptr) {
    return unsupported(offset, fmt::format("'{}' of text that is marked as safe", op));
  }
  if (a.is_number() && b.is_number()) {
    if (a.as_real() == nullptr && b.as_real() == nullptr) return integer_binary(*this, offset, op, a, b);
    const double real_a = *a.number();
    const double real_b = *b.number();
    if ((a.as_big() != nullptr && std::isinf(real_a)) || (b.as_big() != nullptr && std::isinf(real_b))) {
      return error(offset, "int too large to convert to float");
    }
    return real_binary(*this, offset, op, real_a, real_b);
  }
  const std::string* text_b = b.as_string();
  if (op == "+" && text_a != nullptr && text_b != nullptr) {
    HONE_TRY(check_size(offset, text_a->size() + text_b->size()));
    HONE_TRY(charge(offset, text_a->size() + text_b->size()));
    return Value::string(*text_a + *text_b);
  }
  const List* list_a = a.as_list();
  const List* list_b = b.as_list();
  const bool lists = list_a != nullptr && list_b != nullptr;
  const bool alike = lists && ((list_a->shape == Shape::List && list_b->shape == Shape::List) ||
                               (list_a->is_tuple() && list_b->is_tuple()));
  if (op == "+" && alike) {
    HONE_TRY(charge(offset, 16 * (list_a->items.size() + list_b->items.size())));
    std::vector<Value> items;
    items.reserve(list_a->items.size() + list_b->items.size());
    items.insert(items.end(), list_a->items.begin(), list_a->items.end());
    items.insert(items.end(), list_b->items.begin(), list_b->items.end());
    return bounded(offset, make_list(list_a->is_tuple() ? Shape::Tuple : Shape::List, std::move(items)));
  }
  if (op == "*" && is_repeatable(a) && b.any_integral()) return repeat(*this, offset, a, b);
  if (op == "*" && is_repeatable(b) && a.any_integral()) return repeat(*this, offset, b, a);
  const bool views =
      (list_a != nullptr && !list_a->is_sequence()) || (list_b != nullptr && !list_b->is_sequence());
  if (op == "-" && views) return unsupported(offset, "the difference of mapping views");
  return error(offset, fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, a.type_name(),
                                   b.type_name()));
}

}  // namespace hone::jinja
