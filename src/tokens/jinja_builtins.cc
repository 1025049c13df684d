// Filters, tests and global functions. Methods: jinja_methods.cc.
#include "tokens/jinja_builtins.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_arguments.h"
#include "tokens/jinja_strings.h"

namespace hone::jinja {

namespace {

using Filter = Result<Value> (*)(const Call&, const Value&, const Arguments&);

Result<Value> filter_length(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (const std::string* text = input.as_string()) {
    return Value::integer(static_cast<std::int64_t>(count_characters(*text)));
  }
  if (input.is_undefined()) return Value::integer(0);
  if (input.as_list() == nullptr && input.as_dict() == nullptr) {
    return call.error(fmt::format("object of type '{}' has no length", input.type_name()));
  }
  return Value::integer(static_cast<std::int64_t>(input.size()));
}

Result<Value> filter_trim(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [chars] = HONE_TRY(bind<1>(call, arguments, {"chars"}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  return strip(call, text, chars, true, true);
}

Result<Value> filter_upper(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  return change_case(call, text, true);
}

Result<Value> filter_lower(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  return change_case(call, text, false);
}

Result<Value> filter_string(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return Value::string(HONE_TRY(call.evaluator.text_of(call.offset, input)));
}

Result<Value> filter_default(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [fallback, boolean] = HONE_TRY(bind<2>(call, arguments, {"default_value", "boolean"}));
  const bool use = input.is_undefined() || (boolean != nullptr && boolean->truth() && !input.truth());
  if (!use) return input;
  return fallback == nullptr ? Value::string("") : *fallback;
}

Result<Value> filter_join(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [separator] = HONE_TRY(bind<1>(call, arguments, {"d"}));
  const std::string between =
      separator == nullptr ? std::string() : HONE_TRY(call.evaluator.text_of(call.offset, *separator));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  std::string out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    HONE_TRY(call.evaluator.charge(call.offset, between.size()));
    if (i > 0) out += between;
    out += HONE_TRY(call.evaluator.text_of(call.offset, items->items[i]));
  }
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> filter_first(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  if (items->items.empty()) return Value::undefined("No first item, sequence was empty.");
  return items->items.front();
}

Result<Value> filter_last(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.as_dict() != nullptr || input.is_undefined()) return call.unsupported("of this type");
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  if (items->items.empty()) return Value::undefined("No last item, sequence was empty.");
  return items->items.back();
}

Result<Value> filter_list(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, input));
  return make_list(Shape::List, items->items);
}

Result<Value> filter_items(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.is_undefined()) return make_list(Shape::View, {});
  if (input.as_dict() == nullptr) return call.error("Can only get item pairs from a mapping.");
  return call_method(call.evaluator, call.offset, input, "items", {});
}

Result<Value> filter_replace(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [old, with, count] = HONE_TRY(bind<3>(call, arguments, {"old", "new", "count"}));
  if (old == nullptr || with == nullptr) return call.error("replace needs what to replace and with what");
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  const std::string from = HONE_TRY(call.evaluator.text_of(call.offset, *old));
  const std::string to = HONE_TRY(call.evaluator.text_of(call.offset, *with));
  return replace_text(call, text, from, to, count);
}

Result<Value> filter_tojson(const Call& call, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty()) return call.unsupported("with positional arguments");
  const auto [indent, sort_keys] = HONE_TRY(bind<2>(call, arguments, {"indent", "sort_keys"}));
  JsonStyle style;
  style.sort_keys = sort_keys != nullptr && sort_keys->truth();
  if (indent != nullptr && !indent->is_none()) {
    style.indent = indent->integral();
    if (!style.indent || *style.indent < 0 || *style.indent > 16) return call.unsupported("with this indent");
  }
  HONE_TRY(call.evaluator.charge(call.offset, 8 * static_cast<std::uint64_t>(input.weight())));
  std::string out;
  if (const auto lacking = append_json(out, input, style)) {
    if (*lacking == Value::huge_number().type_name())
      return call.unsupported(fmt::format("of a {}", *lacking));
    return call.error(fmt::format("Object of type {} is not JSON serializable", *lacking));
  }
  HONE_TRY(call.evaluator.charge(call.offset, out.size()));
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

constexpr std::array<std::pair<std::string_view, Filter>, 15> kFilters{{
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"first", filter_first},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_lower},
    {"replace", filter_replace},
    {"string", filter_string},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"upper", filter_upper},
}};

// Tests without an argument. nullopt: what Python would say is not known here.
using TypeTest = std::optional<bool> (*)(const Value&);

constexpr std::array<std::pair<std::string_view, TypeTest>, 13> kTypeTests{{
    {"boolean", [](const Value& v) { return std::optional(v.as_boolean() != nullptr); }},
    {"defined", [](const Value& v) { return std::optional(!v.is_undefined()); }},
    {"false", [](const Value& v) { return std::optional(v.as_boolean() != nullptr && !v.truth()); }},
    {"float", [](const Value& v) { return std::optional(v.as_real() != nullptr); }},
    {"integer", [](const Value& v) { return std::optional(v.as_integer() != nullptr); }},
    {"iterable",
     [](const Value& v) {
       if (v.is_object()) return std::optional<bool>{};
       return std::optional(v.is_undefined() || v.as_string() != nullptr || v.as_list() != nullptr ||
                            v.as_dict() != nullptr);
     }},
    {"mapping",
     [](const Value& v) { return v.is_object() ? std::nullopt : std::optional(v.as_dict() != nullptr); }},
    {"none", [](const Value& v) { return std::optional(v.is_none()); }},
    {"number", [](const Value& v) { return std::optional(v.number().has_value()); }},
    {"sequence",
     [](const Value& v) {
       const List* list = v.as_list();
       if (v.is_object() || v.is_undefined() || (list != nullptr && list->shape == Shape::View)) {
         return std::optional<bool>{};
       }
       return std::optional(v.as_string() != nullptr || list != nullptr || v.as_dict() != nullptr);
     }},
    {"string", [](const Value& v) { return std::optional(v.as_string() != nullptr); }},
    {"true", [](const Value& v) { return std::optional(v.as_boolean() != nullptr && v.truth()); }},
    {"undefined", [](const Value& v) { return std::optional(v.is_undefined()); }},
}};

// Tests with one argument that are a comparison.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kCompareTests{{
    {"eq", "=="},
    {"equalto", "=="},
    {"ne", "!="},
    {"lt", "<"},
    {"lessthan", "<"},
    {"le", "<="},
    {"gt", ">"},
    {"greaterthan", ">"},
    {"ge", ">="},
    {"in", "in"},
}};

constexpr std::array<std::string_view, 3> kNumberTests{"odd", "even", "divisibleby"};

template <class Table>
auto find_row(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
}

Result<bool> number_test(const Call& call, std::string_view name, const Value& input,
                         const Arguments& arguments) {
  std::int64_t divisor = 2;
  if (name == "divisibleby") {
    const auto [number] = HONE_TRY(bind<1>(call, arguments, {"num"}));
    if (number == nullptr || !number->integral()) return call.unsupported("without an integer argument");
    divisor = *number->integral();
  } else {
    HONE_TRY(bind<0>(call, arguments, {}));
  }
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  const auto value = input.integral();
  if (!value) return call.unsupported(fmt::format("of a value of type {}", input.type_name()));
  if (divisor == 0) return call.error("integer modulo by zero");
  const bool divides = divisor == -1 || *value % divisor == 0;
  return divides != (name == "odd");
}

Result<Value> call_range(const Call& call, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("range() takes no keyword arguments");
  const auto [a, b, c] = HONE_TRY(bind<3>(call, arguments, {"A", "B", "C"}));
  for (const Value& argument : arguments.positional) {
    if (!argument.integral()) return call.error("range() takes integers");
  }
  if (a == nullptr) return call.error("range() takes at least one argument");
  const std::int64_t start = b == nullptr ? 0 : *a->integral();
  const std::int64_t stop = b == nullptr ? *a->integral() : *b->integral();
  const std::int64_t step = c == nullptr ? 1 : *c->integral();
  if (step == 0) return call.error("range() arg 3 must not be zero");
  // The sandbox's limit, which also keeps the sums below inside 64 bits.
  constexpr std::int64_t kMaxRange = 100'000;
  std::vector<Value> items;
  std::int64_t at = start;
  while (step > 0 ? at < stop : at > stop) {
    if (static_cast<std::int64_t>(items.size()) == kMaxRange) {
      return call.error(fmt::format("range too big, the sandbox blocks ranges larger than {}", kMaxRange));
    }
    HONE_TRY(call.evaluator.charge(call.offset, 0));
    items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(Shape::View, std::move(items));
}

Result<Value> call_namespace(const Call& call, const Arguments& arguments) {
  if (!arguments.positional.empty()) return call.unsupported("with positional arguments");
  auto space = std::make_shared<Namespace>();
  for (const auto& [name, value] : arguments.named) {
    if (name.starts_with('_')) return call.error("a namespace attribute begins with '_'");
    if (value.holds_objects()) return call.unsupported("that holds a namespace, loop or function");
    space->items.emplace_back(name, value);
  }
  return Value::name_space(std::move(space));
}

Result<Value> call_dict(const Call& call, const Arguments& arguments) {
  if (arguments.positional.size() > 1) return call.error("dict expected at most 1 argument");
  std::vector<std::pair<std::string, Value>> items;
  if (!arguments.positional.empty()) {
    const Dict* base = arguments.positional[0].as_dict();
    if (base == nullptr) return call.unsupported("of anything but a mapping");
    HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(base->items.size())));
    items = base->items;
  }
  for (const auto& [name, value] : arguments.named) {
    const auto same =
        std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
    if (same == items.end()) {
      items.emplace_back(name, value);
    } else {
      same->second = value;
    }
  }
  return call.evaluator.bounded(call.offset, make_dict(std::move(items)));
}

Result<Value> call_raise(const Call& call, const Arguments& arguments) {
  const auto [message] = HONE_TRY(bind<1>(call, arguments, {"message"}));
  if (message == nullptr) return call.error("raise_exception needs a message");
  return call.error(HONE_TRY(call.evaluator.text_of(call.offset, *message)));
}

}  // namespace

bool is_known_filter(std::string_view name) {
  return find_row(kFilters, name) != kFilters.end();
}

bool is_known_test(std::string_view name) {
  return find_row(kTypeTests, name) != kTypeTests.end() ||
         find_row(kCompareTests, name) != kCompareTests.end() ||
         std::find(kNumberTests.begin(), kNumberTests.end(), name) != kNumberTests.end();
}

std::string_view unsupported_global(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kMissing{{
      {"joiner", "function 'joiner'"},
      {"cycler", "function 'cycler'"},
      {"lipsum", "function 'lipsum'"},
      {"strftime_now", "function 'strftime_now'"},
      {"self", "variable 'self'"},
      {"caller", "function 'caller'"},
      {"varargs", "variable 'varargs'"},
  }};
  const auto row = find_row(kMissing, name);
  return row == kMissing.end() ? std::string_view{} : row->second;
}

Result<Value> apply_filter(Evaluator& evaluator, std::uint32_t offset, std::string_view name,
                           const Value& input, const Arguments& arguments) {
  const std::string what = fmt::format("filter '{}'", name);
  const auto row = find_row(kFilters, name);
  if (row == kFilters.end()) return evaluator.unsupported(offset, what);
  return row->second(Call{evaluator, offset, what}, input, arguments);
}

Result<bool> apply_test(Evaluator& evaluator, std::uint32_t offset, std::string_view name, const Value& input,
                        const Arguments& arguments) {
  const std::string what = fmt::format("test '{}'", name);
  const Call call{evaluator, offset, what};
  if (const auto row = find_row(kTypeTests, name); row != kTypeTests.end()) {
    HONE_TRY(bind<0>(call, arguments, {}));
    const bool asks_type = name == "number" || name == "integer" || name == "float";
    const auto holds = input.is_huge() && asks_type ? std::nullopt : row->second(input);
    if (!holds) return call.unsupported(fmt::format("of a value of type {}", input.type_name()));
    return *holds;
  }
  if (const auto row = find_row(kCompareTests, name); row != kCompareTests.end()) {
    const auto [other] = HONE_TRY(bind<1>(call, arguments, {"B"}));
    if (other == nullptr) return call.error(fmt::format("{} needs an argument", what));
    return evaluator.compare(offset, row->second, input, *other);
  }
  return number_test(call, name, input, arguments);
}

Result<Value> call_function(Evaluator& evaluator, std::uint32_t offset, Function function,
                            const Arguments& arguments) {
  switch (function) {
    case Function::Range:
      return call_range({evaluator, offset, "function 'range'"}, arguments);
    case Function::Namespace:
      return call_namespace({evaluator, offset, "function 'namespace'"}, arguments);
    case Function::Dict:
      return call_dict({evaluator, offset, "function 'dict'"}, arguments);
    case Function::RaiseException:
      return call_raise({evaluator, offset, "function 'raise_exception'"}, arguments);
  }
  return internal_error("template", "a function of unknown kind");
}

}  // namespace hone::jinja
