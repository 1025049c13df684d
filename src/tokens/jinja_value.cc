#include "tokens/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

thread_local std::int64_t live = 0;

}  // namespace

std::int64_t live_bytes() {
  return live;
}

Footprint::Footprint(std::size_t bytes) : bytes_(static_cast<std::int64_t>(bytes)) {
  live += bytes_;
}

Footprint::~Footprint() {
  live -= bytes_;
}

void Footprint::grow(std::size_t bytes) {
  live += static_cast<std::int64_t>(bytes);
  bytes_ += static_cast<std::int64_t>(bytes);
}

Namespace::Namespace(std::vector<std::pair<std::string, Value>> values)
    : items(std::move(values)), footprint(items.capacity() * sizeof(items[0]) + 128) {}

Value* Namespace::find(std::string_view name) {
  const auto at =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == name; });
  return at == items.end() ? nullptr : &at->second;
}

void Namespace::add(std::string name, Value value) {
  items.emplace_back(std::move(name), std::move(value));
  footprint.grow(2 * sizeof(items[0]));
}

Generator::Generator(std::vector<Value> values, std::optional<Error> error)
    : items(std::move(values)),
      failure(std::move(error)),
      footprint(items.capacity() * sizeof(Value) + 256) {}

List::List(Shape kind, std::vector<Value> values)
    : shape(kind), items(std::move(values)), footprint(items.capacity() * sizeof(Value) + 96) {
  for (const Value& item : items) {
    depth = std::max(depth, item.depth() + 1);
    weight += item.weight();
  }
}

Dict::Dict(std::vector<std::pair<std::string, Value>> values)
    : items(std::move(values)), footprint(items.capacity() * sizeof(items[0]) + 96) {
  for (const auto& [key, item] : items) {
    depth = std::max(depth, item.depth() + 1);
    weight += 1 + static_cast<std::int64_t>(key.size()) + item.weight();
  }
}

const Value* Dict::find(std::string_view key) const {
  const auto at =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
  return at == items.end() ? nullptr : &at->second;
}

std::string_view List::type_name() const {
  switch (shape) {
    case Shape::List:
      return "list";
    case Shape::Tuple:
      return "tuple";
    case Shape::Group:
      return "_GroupTuple";
    case Shape::Keys:
      return "dict_keys";
    case Shape::Values:
      return "dict_values";
    case Shape::Items:
      return "dict_items";
    case Shape::Range:
      return "range";
  }
  return "list";
}

Value Value::integer(BigInteger value) {
  if (const auto small = value.small()) return Value(*small);
  return Value(std::make_shared<const BigInteger>(std::move(value)));
}

Value Value::method(Value object, std::string name) {
  auto out = std::make_shared<Method>();
  out->object = std::move(object);
  out->name = std::move(name);
  return Value(MethodPtr(std::move(out)));
}

std::optional<std::int64_t> Value::integral() const {
  if (const auto* integer = std::get_if<std::int64_t>(&state_)) return *integer;
  if (const auto* boolean = as_boolean()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<BigInteger> Value::any_integral() const {
  if (const BigInteger* big = as_big()) return *big;
  if (const auto integer = integral()) return BigInteger(*integer);
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* real = as_real()) return *real;
  if (const auto integer = integral()) return static_cast<double>(*integer);
  if (const BigInteger* big = as_big()) return big->to_double();
  return std::nullopt;
}

std::optional<bool> Value::same_as(const Value& other) const {
  if (state_.index() != other.state_.index()) return false;
  if (is_none()) return true;
  if (const bool* boolean = as_boolean()) return *boolean == *other.as_boolean();
  if (const List* list = as_list()) {
    return list == other.as_list() ? std::optional(true)
           : list->is_tuple()      ? std::nullopt
                                   : std::optional(false);
  }
  if (as_dict() != nullptr) return as_dict() == other.as_dict();
  if (as_namespace() != nullptr) return as_namespace() == other.as_namespace();
  if (as_generator() != nullptr) return as_generator() == other.as_generator();
  if (as_function() != nullptr) return *as_function() == *other.as_function();
  return std::nullopt;
}

std::int32_t Value::depth() const {
  if (const List* list = as_list()) return list->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  if (const Method* method = as_method()) return method->object.depth();
  if (const Generator* generator = as_generator()) {
    std::int32_t deepest = 0;
    for (const Value& item : generator->items) deepest = std::max(deepest, item.depth());
    return deepest + 1;
  }
  if (const Counter* counter = as_counter()) {
    std::int32_t deepest = 0;
    for (const Value& item : counter->items) deepest = std::max(deepest, item.depth());
    return deepest + 1;
  }
  return 0;
}

std::string_view Value::type_name() const {
  if (const List* list = as_list()) return list->type_name();
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (as_boolean() != nullptr) return "bool";
  if (is_integer()) return "int";
  if (as_real() != nullptr) return "float";
  if (as_string() != nullptr) return "str";
  if (as_markup() != nullptr) return "Markup";
  if (as_dict() != nullptr) return "dict";
  if (as_namespace() != nullptr) return "Namespace";
  if (as_generator() != nullptr) return "generator";
  if (as_loop() != nullptr) return "LoopContext";
  if (as_macro() != nullptr) return "Macro";
  if (as_counter() != nullptr) return as_counter()->is_joiner ? "Joiner" : "Cycler";
  return "builtin_function_or_method";
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (const auto* boolean = as_boolean()) return *boolean;
  if (const auto integer = integral()) return *integer != 0;
  if (const auto* real = as_real()) return *real != 0.0;
  if (const auto* string = as_string()) return !string->empty();
  if (const auto* markup = as_markup()) return !markup->empty();
  if (const List* list = as_list()) return !list->items.empty();
  if (const Dict* dict = as_dict()) return !dict->items.empty();
  return true;
}

std::size_t Value::size() const {
  if (const auto* string = as_string()) return string->size();
  if (const auto* markup = as_markup()) return markup->size();
  if (const List* list = as_list()) return list->items.size();
  if (const Dict* dict = as_dict()) return dict->items.size();
  if (const Generator* generator = as_generator()) return generator->items.size();
  if (const BigInteger* big = as_big()) return big->bits() / 8;
  return 1;
}

std::int64_t Value::weight() const {
  if (const auto* string = as_string()) return 1 + static_cast<std::int64_t>(string->size());
  if (const auto* markup = as_markup()) return 1 + static_cast<std::int64_t>(markup->size());
  if (const List* list = as_list()) return list->weight;
  if (const Dict* dict = as_dict()) return dict->weight;
  // Printing is quadratic in the digits.
  if (const BigInteger* big = as_big()) {
    const auto digits = static_cast<std::int64_t>(std::min(big->bits() / 3 + 1, kMostDigits));
    return 1 + digits + digits * digits / 64;
  }
  return 1;
}

Value make_list(Shape shape, std::vector<Value> items) {
  return Value::list(std::make_shared<const List>(shape, std::move(items)));
}

Value make_dict(std::vector<std::pair<std::string, Value>> items) {
  return Value::dict(std::make_shared<const Dict>(std::move(items)));
}

namespace {

std::optional<bool> equal_lists(const List& a, const List& b) {
  if (!a.is_sequence() || !b.is_sequence()) return &a == &b ? std::optional(true) : std::nullopt;
  if ((a.shape != b.shape && !(a.is_tuple() && b.is_tuple())) || a.items.size() != b.items.size())
    return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const auto same = equal(a.items[i], b.items[i]);
    if (!same || !*same) return same;
  }
  return true;
}

std::optional<bool> equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const auto& [key, value] = a.items[i];
    // Nearly always in the same order.
    const Value* other = b.items[i].first == key ? &b.items[i].second : b.find(key);
    if (other == nullptr) return false;
    const auto same = equal(value, *other);
    if (!same || !*same) return same;
  }
  return true;
}

// Of two numbers; nullopt with NaN.
std::optional<int> order_numbers(const Value& a, const Value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (a.integral() && b.integral()) return sign(*a.integral(), *b.integral());
  const double* real_a = a.as_real();
  const double* real_b = b.as_real();
  if (real_a != nullptr && real_b != nullptr) {
    return std::isnan(*real_a) || std::isnan(*real_b) ? std::nullopt : std::optional(sign(*real_a, *real_b));
  }
  if (real_a == nullptr && real_b == nullptr)
    return BigInteger::compare(*a.any_integral(), *b.any_integral());
  const double real = real_a != nullptr ? *real_a : *real_b;
  const BigInteger whole = real_a != nullptr ? *b.any_integral() : *a.any_integral();
  if (std::isnan(real)) return std::nullopt;
  int out = 0;  // of the float against the integer
  if (std::isinf(real)) {
    out = real > 0 ? 1 : -1;
  } else {
    out = BigInteger::compare(BigInteger::from_double(real), whole);
    if (out == 0) out = sign(real, std::trunc(real));
  }
  return real_a != nullptr ? out : -out;
}

const std::string* text_of(const Value& value) {
  return value.as_string() != nullptr ? value.as_string() : value.as_markup();
}

}  // namespace

std::optional<bool> equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  const std::string* text_a = text_of(a);
  const std::string* text_b = text_of(b);
  if (text_a != nullptr && text_b != nullptr) return *text_a == *text_b;
  if (a.as_list() != nullptr && b.as_list() != nullptr) return equal_lists(*a.as_list(), *b.as_list());
  if (a.as_dict() != nullptr && b.as_dict() != nullptr) return equal_dicts(*a.as_dict(), *b.as_dict());
  if (a.is_undefined() && b.is_undefined()) return true;
  return a.same_as(b);
}

std::optional<int> order(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b);
  const std::string* text_a = text_of(a);
  const std::string* text_b = text_of(b);
  if (text_a != nullptr && text_b != nullptr) {
    const int sign = text_a->compare(*text_b);
    return sign < 0 ? -1 : (sign > 0 ? 1 : 0);
  }
  const List* list_a = a.as_list();
  const List* list_b = b.as_list();
  const bool lists = list_a != nullptr && list_b != nullptr &&
                     ((list_a->shape == Shape::List && list_b->shape == Shape::List) ||
                      (list_a->is_tuple() && list_b->is_tuple()));
  if (!lists) return std::nullopt;
  const std::size_t common = std::min(list_a->items.size(), list_b->items.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto same = equal(list_a->items[i], list_b->items[i]);
    if (!same) return std::nullopt;
    if (!*same) return order(list_a->items[i], list_b->items[i]);
  }
  return list_a->items.size() < list_b->items.size() ? -1
                                                     : (list_a->items.size() > list_b->items.size() ? 1 : 0);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(count_characters(text));
  while (!text.empty()) {
    const std::size_t length = utf8_step(text).length;
    out.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace hone::jinja
