// Attributes, items, slices and calls, by the rules of Jinja's sandbox: `a.b` is first an attribute of the
// Python object and then an item, `a['b']` the other way round.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_eval.h"
#include "tokens/jinja_strings.h"

namespace hone::jinja {

namespace {

Value missing(const Value& object, std::string_view name) {
  const std::string shown = object.is_none() ? "None" : fmt::format("{} object", object.type_name());
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", shown, name));
}

Value unsafe(const Value& object, std::string_view name) {
  return Value::undefined(
      fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, object.type_name()));
}

const Value* find_item(const Value& object, std::string_view name) {
  if (const Dict* dict = object.as_dict()) return dict->find(name);
  if (Namespace* space = object.as_namespace()) return space->find(name);
  return nullptr;
}

}  // namespace

Result<Value> Evaluator::attribute(std::uint32_t offset, const Value& object, std::string_view name) {
  HONE_TRY(require_defined(offset, object));
  HONE_TRY(charge(offset, object.as_string() != nullptr ? 0 : object.size()));
  if (object.as_loop() != nullptr && !name.starts_with('_')) return loop_attribute(offset, object, name);
  if (const Namespace* space = object.as_namespace(); space != nullptr && !name.starts_with("__")) {
    const Value* value = find_item(object, name);
    return value != nullptr ? *value : missing(object, name);
  }
  if (const Counter* counter = object.as_counter(); counter != nullptr && !counter->is_joiner) {
    if (name == "current") return counter->items[counter->at];
  }
  if (const List* list = object.as_list(); list != nullptr && list->shape == Shape::Group) {
    if (name == "grouper") return list->items[0];
    if (name == "list") return list->items[1];
  }
  switch (attribute_kind(object, name)) {
    case Attribute::None:
      break;
    case Attribute::Method:
      return Value::method(object, std::string(name));
    case Attribute::Unsafe:
      return unsafe(object, name);
    case Attribute::Other:
      return unsupported(offset, fmt::format("attribute '{}' of a {}", name, object.type_name()));
  }
  const Value* value = find_item(object, name);
  return value != nullptr ? *value : missing(object, name);
}

Result<Value> Evaluator::item(std::uint32_t offset, const Value& object, const Value& index) {
  HONE_TRY(require_defined(offset, object));
  HONE_TRY(charge(offset, object.size()));
  if (index.as_markup() != nullptr) return unsupported(offset, "an index that is marked as safe");
  if (const std::string* name = index.as_string()) {
    if (object.as_dict() != nullptr) {
      if (const Value* value = find_item(object, *name)) return *value;
    }
    return attribute(offset, object, *name);
  }
  const List* list = object.as_list();
  const std::string* text = object.as_string();
  const auto at = index.integral();
  const Value none = Value::undefined(fmt::format("{} object has no such element", object.type_name()));
  if (object.as_markup() != nullptr) return unsupported(offset, "an item of text that is marked as safe");
  if (!at || (list == nullptr && text == nullptr) || (list != nullptr && !list->is_sequence())) return none;
  const auto length =
      static_cast<std::int64_t>(list != nullptr ? list->items.size() : count_characters(*text));
  const std::int64_t place = *at < 0 ? *at + length : *at;
  if (place < 0 || place >= length) return none;
  if (list != nullptr) return list->items[static_cast<std::size_t>(place)];
  const std::size_t begin = first_characters(*text, static_cast<std::size_t>(place)).size();
  return Value::string(std::string(first_characters(std::string_view(*text).substr(begin), 1)));
}

namespace {

// Python's slice.indices: which positions of `length` a slice takes.
struct SliceRange {
  std::int64_t start;
  std::int64_t stop;
  std::int64_t step;
  std::int64_t count;
};

SliceRange slice_range(std::int64_t length, std::optional<std::int64_t> start,
                       std::optional<std::int64_t> stop, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1;
  const std::int64_t high = step > 0 ? length : length - 1;
  const auto place = [&](std::int64_t at) { return std::clamp(at < 0 ? at + length : at, low, high); };
  const std::int64_t first = start ? place(*start) : (step > 0 ? low : high);
  const std::int64_t last = stop ? place(*stop) : (step > 0 ? high : low);
  const std::int64_t distance = step > 0 ? last - first : first - last;
  // Beyond the length every step takes one element; clamped so that it can be negated.
  const std::int64_t stride =
      std::clamp(step > 0 ? step : -std::max(step, -length - 1), std::int64_t{1}, length + 1);
  const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  return {first, last, step > 0 ? stride : -stride, count};
}

}  // namespace

Result<Value> Evaluator::evaluate_slice(const Expr& expr) {
  const Value object = HONE_TRY(evaluate(*expr.children[0]));
  std::array<std::optional<std::int64_t>, 3> parts;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!expr.children[i + 1]) continue;
    const Value part = HONE_TRY(evaluate(*expr.children[i + 1]));
    if (part.is_none()) continue;
    parts[i] = part.integral();
    if (!parts[i] && part.as_big() != nullptr)
      return unsupported(expr.offset, "a slice bound beyond 64 bits");
    if (!parts[i]) {
      HONE_TRY(require_defined(expr.offset, object));
      return error(expr.offset, "slice indices must be integers or None");
    }
  }
  HONE_TRY(require_defined(expr.offset, object));
  HONE_TRY(charge(expr.offset, 4 * static_cast<std::uint64_t>(object.size())));
  const std::int64_t step = parts[2].value_or(1);
  const List* list = object.as_list();
  const std::string* text = object.as_string();
  if (object.as_markup() != nullptr)
    return unsupported(expr.offset, "a slice of text that is marked as safe");
  if ((list == nullptr || !list->is_sequence()) && text == nullptr) {
    return error(expr.offset, fmt::format("'{}' object is not subscriptable", object.type_name()));
  }
  if (step == 0) return error(expr.offset, "slice step cannot be zero");
  if (list != nullptr) {
    const SliceRange range =
        slice_range(static_cast<std::int64_t>(list->items.size()), parts[0], parts[1], step);
    HONE_TRY(charge(expr.offset, 16 * static_cast<std::uint64_t>(range.count)));
    std::vector<Value> items;
    items.reserve(static_cast<std::size_t>(range.count));
    for (std::int64_t i = 0; i < range.count; ++i) {
      items.push_back(list->items[static_cast<std::size_t>(range.start + i * range.step)]);
    }
    if (list->shape != Shape::Range) {
      return make_list(list->shape == Shape::List ? Shape::List : Shape::Tuple, std::move(items));
    }
    // A slice of a range is a range; where its ends lie shows only when it is printed.
    auto out = std::make_shared<List>(Shape::Range, std::move(items));
    const auto at = [&](std::int64_t place, std::int64_t& value) {
      return !__builtin_mul_overflow(place, list->range[2], &value) &&
             !__builtin_add_overflow(list->range[0], value, &value);
    };
    if (!at(range.start, out->range[0]) || !at(range.stop, out->range[1]) ||
        __builtin_mul_overflow(list->range[2], range.step, &out->range[2])) {
      return unsupported(expr.offset, "a range beyond 64 bits");
    }
    return Value::list(std::move(out));
  }
  // Where each character begins.
  std::vector<std::uint32_t> begins;
  begins.reserve(text->size() + 1);
  for (std::size_t i = 0; i < text->size(); ++i) {
    if ((static_cast<unsigned char>((*text)[i]) & 0xC0U) != 0x80U)
      begins.push_back(static_cast<std::uint32_t>(i));
  }
  begins.push_back(static_cast<std::uint32_t>(text->size()));
  const SliceRange range =
      slice_range(static_cast<std::int64_t>(begins.size()) - 1, parts[0], parts[1], step);
  std::string out;
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto at = static_cast<std::size_t>(range.start + i * range.step);
    out.append(*text, begins[at], begins[at + 1] - begins[at]);
  }
  return Value::string(std::move(out));
}

// `caller`: another named argument, of a call block.
Result<Value> Evaluator::evaluate_call(const Expr& expr, std::pair<std::string, Value>* caller) {
  const Value callee = HONE_TRY(evaluate(*expr.children[0]));
  Arguments arguments = HONE_TRY(evaluate_arguments(expr));
  if (caller != nullptr) arguments.named.push_back(std::move(*caller));
  return call(expr.children[0]->offset, callee, arguments);
}

Result<Value> Evaluator::call(std::uint32_t offset, const Value& callee, const Arguments& arguments) {
  HONE_TRY(require_defined(offset, callee));
  if (const Function* function = callee.as_function())
    return call_function(*this, offset, *function, arguments);
  if (const Method* method = callee.as_method()) {
    return call_method(*this, offset, method->object, method->name, arguments);
  }
  if (const Macro* macro = callee.as_macro()) return call_macro(offset, *macro, arguments);
  if (const Loop* loop = callee.as_loop()) return call_loop(offset, *loop, arguments);
  if (Counter* counter = callee.as_counter(); counter != nullptr && counter->is_joiner) {
    if (!arguments.positional.empty() || !arguments.named.empty()) {
      return error(offset, "a joiner takes no arguments");
    }
    return counter->at++ == 0 ? Value::string("") : counter->items[0];
  }
  return error(offset, fmt::format("'{}' object is not callable", callee.type_name()));
}

}  // namespace hone::jinja
