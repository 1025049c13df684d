// Tests: `x is name`.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_strings.h"

namespace hone::jinja {

namespace {

bool is_text(const Value& v) {
  return v.as_string() != nullptr || v.as_markup() != nullptr;
}

bool is_iterable(const Value& v) {
  return v.is_undefined() || is_text(v) || v.as_list() != nullptr || v.as_dict() != nullptr ||
         v.as_generator() != nullptr || v.as_loop() != nullptr;
}

bool is_sequence(const Value& v) {
  const List* list = v.as_list();
  return v.is_undefined() || is_text(v) || v.as_dict() != nullptr || (list != nullptr && list->is_sequence());
}

using TypeTest = bool (*)(const Value&);

constexpr std::array<std::pair<std::string_view, TypeTest>, 15> kTypeTests{{
    {"boolean", [](const Value& v) { return v.as_boolean() != nullptr; }},
    {"callable", [](const Value& v) { return v.is_callable() || v.is_undefined(); }},
    {"defined", [](const Value& v) { return !v.is_undefined(); }},
    {"escaped", [](const Value& v) { return v.as_markup() != nullptr; }},
    {"false", [](const Value& v) { return v.as_boolean() != nullptr && !v.truth(); }},
    {"float", [](const Value& v) { return v.as_real() != nullptr; }},
    {"integer", [](const Value& v) { return v.is_integer(); }},
    {"iterable", is_iterable},
    {"mapping", [](const Value& v) { return v.as_dict() != nullptr; }},
    {"none", [](const Value& v) { return v.is_none(); }},
    {"number", [](const Value& v) { return v.is_number(); }},
    {"sequence", is_sequence},
    {"string", is_text},
    {"true", [](const Value& v) { return v.as_boolean() != nullptr && v.truth(); }},
    {"undefined", [](const Value& v) { return v.is_undefined(); }},
}};

// Tests with one argument that are a comparison.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kCompareTests{{
    {"eq", "=="},
    {"equalto", "=="},
    {"==", "=="},
    {"ne", "!="},
    {"!=", "!="},
    {"lt", "<"},
    {"lessthan", "<"},
    {"<", "<"},
    {"le", "<="},
    {"<=", "<="},
    {"gt", ">"},
    {"greaterthan", ">"},
    {">", ">"},
    {"ge", ">="},
    {">=", ">="},
    {"in", "in"},
}};

constexpr std::array<std::string_view, 8> kOtherTests{"odd",   "even",  "divisibleby", "sameas",
                                                      "lower", "upper", "filter",      "test"};

template <class Table>
auto find_row(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
}

// value % divisor == rest, by the operators' own rules.
Result<bool> number_test(const Call& call, std::string_view name, const Value& input,
                         const Arguments& arguments) {
  Value divisor = Value::integer(2);
  if (name == "divisibleby") {
    const auto [number] = HONE_TRY(bind<1>(call, arguments, {"num"}));
    if (number == nullptr) return call.error("the test 'divisibleby' needs an argument");
    divisor = *number;
  } else {
    HONE_TRY(bind<0>(call, arguments, {}));
  }
  const Value rest = HONE_TRY(call.evaluator.binary(call.offset, "%", input, divisor));
  return call.evaluator.compare(call.offset, "==", rest, Value::integer(name == "odd" ? 1 : 0));
}

Result<bool> other_test(const Call& call, std::string_view name, const Value& input,
                        const Arguments& arguments) {
  if (name == "sameas") {
    const auto [other] = HONE_TRY(bind<1>(call, arguments, {"other"}));
    if (other == nullptr) return call.error("the test 'sameas' needs an argument");
    const auto same = input.same_as(*other);
    if (same) return *same;
    // Small integers are one object each.
    constexpr std::int64_t kNotSmall = 257;
    const std::int64_t a = input.is_integer() ? input.integral().value_or(kNotSmall) : kNotSmall;
    const std::int64_t b = other->is_integer() ? other->integral().value_or(kNotSmall) : kNotSmall;
    if (a >= -5 && a < kNotSmall && b >= -5 && b < kNotSmall) return a == b;
    const auto alike = equal(input, *other);
    if (alike && !*alike) return false;
    return call.unsupported(fmt::format("of values of type {}", input.type_name()));
  }
  if (name == "lower" || name == "upper") {
    HONE_TRY(bind<0>(call, arguments, {}));
    const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
    return is_cased(call, text, name == "upper" ? LetterCase::Upper : LetterCase::Lower);
  }
  if (name == "filter" || name == "test") {
    HONE_TRY(bind<0>(call, arguments, {}));
    if (input.as_list() != nullptr || input.as_dict() != nullptr) {
      return call.error(fmt::format("unhashable type: '{}'", input.type_name()));
    }
    const std::string* text = input.as_string();
    if (text == nullptr) return false;
    return name == "filter" ? is_known_filter(*text) || is_unsupported_filter(*text) : is_known_test(*text);
  }
  return number_test(call, name, input, arguments);
}

}  // namespace

bool is_known_test(std::string_view name) {
  return find_row(kTypeTests, name) != kTypeTests.end() ||
         find_row(kCompareTests, name) != kCompareTests.end() ||
         std::find(kOtherTests.begin(), kOtherTests.end(), name) != kOtherTests.end();
}

Result<bool> apply_test(Evaluator& evaluator, std::uint32_t offset, std::string_view name, const Value& input,
                        const Arguments& arguments) {
  const std::string what = fmt::format("test '{}'", name);
  const Call call{evaluator, offset, what};
  if (const auto row = find_row(kTypeTests, name); row != kTypeTests.end()) {
    HONE_TRY(bind<0>(call, arguments, {}));
    return row->second(input);
  }
  if (const auto row = find_row(kCompareTests, name); row != kCompareTests.end()) {
    const auto [other] = HONE_TRY(bind<1>(call, arguments, {"B"}));
    if (other == nullptr) return call.error(fmt::format("{} needs an argument", what));
    return evaluator.compare(offset, row->second, input, *other);
  }
  if (!is_known_test(name)) return call.error(fmt::format("No test named '{}'.", name));
  return other_test(call, name, input, arguments);
}

}  // namespace hone::jinja
