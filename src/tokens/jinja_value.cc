#include "tokens/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "tokens/utf8.h"

namespace hone::jinja {

const Value* Dict::find(std::string_view key) const {
  const auto at =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
  return at == items.end() ? nullptr : &at->second;
}

std::optional<std::int64_t> Value::integral() const {
  if (const auto* integer = as_integer()) return *integer;
  if (const auto* boolean = as_boolean()) return *boolean ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto* real = as_real()) return *real;
  if (const auto integer = integral()) return static_cast<double>(*integer);
  return std::nullopt;
}

bool Value::holds_objects() const {
  if (is_object()) return true;
  if (const List* list = as_list()) return list->holds_objects;
  if (const Dict* dict = as_dict()) return dict->holds_objects;
  return false;
}

std::int32_t Value::depth() const {
  if (const List* list = as_list()) return list->depth;
  if (const Dict* dict = as_dict()) return dict->depth;
  return 0;
}

std::string_view Value::type_name() const {
  if (const List* list = as_list()) {
    return list->shape == Shape::List ? "list" : list->shape == Shape::Tuple ? "tuple" : "view";
  }
  if (is_huge()) return "number beyond 64 bits";
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (as_boolean() != nullptr) return "bool";
  if (as_integer() != nullptr) return "int";
  if (as_real() != nullptr) return "float";
  if (as_string() != nullptr) return "str";
  if (as_dict() != nullptr) return "dict";
  if (as_namespace() != nullptr) return "Namespace";
  if (as_loop() != nullptr) return "LoopContext";
  return "function";
}

bool Value::truth() const {
  if (is_undefined() || is_none()) return false;
  if (const auto* boolean = as_boolean()) return *boolean;
  if (const auto* integer = as_integer()) return *integer != 0;
  if (const auto* real = as_real()) return *real != 0.0;
  if (const auto* string = as_string()) return !string->empty();
  if (const List* list = as_list()) return !list->items.empty();
  if (const Dict* dict = as_dict()) return !dict->items.empty();
  return true;
}

std::size_t Value::size() const {
  if (const auto* string = as_string()) return string->size();
  if (const List* list = as_list()) return list->items.size();
  if (const Dict* dict = as_dict()) return dict->items.size();
  return 1;
}

std::int64_t Value::weight() const {
  if (const auto* string = as_string()) return 1 + static_cast<std::int64_t>(string->size());
  if (const List* list = as_list()) return list->weight;
  if (const Dict* dict = as_dict()) return dict->weight;
  return 1;
}

Value make_list(Shape shape, std::vector<Value> items) {
  List out;
  out.shape = shape;
  for (const Value& item : items) {
    out.depth = std::max(out.depth, item.depth() + 1);
    out.weight += item.weight();
    out.holds_objects = out.holds_objects || item.holds_objects();
  }
  out.items = std::move(items);
  return Value::list(std::make_shared<const List>(std::move(out)));
}

Value make_dict(std::vector<std::pair<std::string, Value>> items) {
  Dict out;
  for (const auto& [key, item] : items) {
    out.depth = std::max(out.depth, item.depth() + 1);
    out.weight += 1 + static_cast<std::int64_t>(key.size()) + item.weight();
    out.holds_objects = out.holds_objects || item.holds_objects();
  }
  out.items = std::move(items);
  return Value::dict(std::make_shared<const Dict>(std::move(out)));
}

namespace {

std::optional<bool> equal_lists(const List& a, const List& b) {
  if (a.shape == Shape::View || b.shape == Shape::View) return std::nullopt;
  if (a.shape != b.shape || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    const auto same = equal(a.items[i], b.items[i]);
    if (!same || !*same) return same;
  }
  return true;
}

std::optional<bool> equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(key);
    if (other == nullptr) return false;
    const auto same = equal(value, *other);
    if (!same || !*same) return same;
  }
  return true;
}

}  // namespace

std::optional<bool> equal(const Value& a, const Value& b) {
  if (a.is_object() || b.is_object()) return std::nullopt;
  if (a.integral() && b.integral()) return *a.integral() == *b.integral();
  // A long double holds every 64-bit integer and every double exactly.
  if (a.number() && b.number()) {
    const auto exact = [](const Value& v) {
      return v.integral() ? static_cast<long double>(*v.integral()) : static_cast<long double>(*v.as_real());
    };
    return exact(a) == exact(b);
  }
  if (a.as_string() != nullptr && b.as_string() != nullptr) return *a.as_string() == *b.as_string();
  if (a.as_list() != nullptr && b.as_list() != nullptr) return equal_lists(*a.as_list(), *b.as_list());
  if (a.as_dict() != nullptr && b.as_dict() != nullptr) return equal_dicts(*a.as_dict(), *b.as_dict());
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> out;
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
