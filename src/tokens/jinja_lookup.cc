// Attributes, items, slices and calls, by the rules of Jinja's sandbox: `a.b` is first an attribute of the
// Python object and then an item, `a['b']` the other way round.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_eval.h"

namespace hone::jinja {

namespace {

Result<Value> loop_attribute(const Evaluator& evaluator, std::uint32_t offset, const Loop& loop,
                             std::string_view name) {
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto length = static_cast<std::int64_t>(loop.items->items.size());
  if (name == "index") return Value::integer(index + 1);
  if (name == "index0") return Value::integer(index);
  if (name == "revindex") return Value::integer(length - index);
  if (name == "revindex0") return Value::integer(length - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == length);
  if (name == "length") return Value::integer(length);
  if (name == "previtem") {
    return index == 0 ? Value::undefined("there is no previous item") : loop.items->items[loop.index - 1];
  }
  if (name == "nextitem") {
    return index + 1 == length ? Value::undefined("there is no next item")
                               : loop.items->items[loop.index + 1];
  }
  return evaluator.unsupported(offset, fmt::format("attribute 'loop.{}'", name));
}

Value missing(const Value& object, std::string_view name) {
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", object.type_name(), name));
}

// What `object.name` and `object['name']` share once the type itself has no such attribute.
Result<Value> named_item(const Evaluator& evaluator, std::uint32_t offset, const Value& object,
                         std::string_view name) {
  HONE_TRY(evaluator.require_defined(offset, object));
  if (const Dict* dict = object.as_dict()) {
    if (const Value* value = dict->find(name)) return *value;
  }
  if (const Namespace* space = object.as_namespace()) {
    for (const auto& [key, value] : space->items) {
      if (key == name) return value;
    }
  }
  return missing(object, name);
}

Error shadowed(const Evaluator& evaluator, std::uint32_t offset, const Value& object, std::string_view name) {
  return evaluator.unsupported(
      offset, fmt::format("attribute '{}' of a {} without a call", name, object.type_name()));
}

}  // namespace

Result<Value> Evaluator::evaluate_attribute(const Expr& expr) {
  const Value object = HONE_TRY(evaluate(*expr.children[0]));
  HONE_TRY(require_defined(expr.offset, object));
  HONE_TRY(charge(expr.offset, object.size()));
  if (const Loop* loop = object.as_loop()) return loop_attribute(*this, expr.offset, *loop, expr.text);
  if (object.as_function() != nullptr || shadows_item(object, expr.text)) {
    return shadowed(*this, expr.offset, object, expr.text);
  }
  return named_item(*this, expr.offset, object, expr.text);
}

Result<Value> Evaluator::evaluate_item(const Expr& expr) {
  const Value object = HONE_TRY(evaluate(*expr.children[0]));
  const Value index = HONE_TRY(evaluate(*expr.children[1]));
  HONE_TRY(require_defined(expr.offset, object));
  HONE_TRY(charge(expr.offset, object.size()));
  if (object.as_loop() != nullptr || object.as_function() != nullptr || object.as_namespace() != nullptr) {
    return unsupported(expr.offset, fmt::format("an item of a {}", object.type_name()));
  }
  if (const std::string* name = index.as_string()) {
    const Dict* dict = object.as_dict();
    const bool present = dict != nullptr && dict->find(*name) != nullptr;
    if (!present && shadows_item(object, *name)) return shadowed(*this, expr.offset, object, *name);
    return named_item(*this, expr.offset, object, *name);
  }
  const List* list = object.as_list();
  if (list != nullptr && list->shape == Shape::View) return unsupported(expr.offset, "an item of a view");
  const auto at = index.integral();
  if (!at || (list == nullptr && object.as_string() == nullptr)) {
    return Value::undefined(fmt::format("'{} object' has no such item", object.type_name()));
  }
  const auto pick = [&](std::size_t size) {
    const auto length = static_cast<std::int64_t>(size);
    const std::int64_t place = *at < 0 ? *at + length : *at;
    return place >= 0 && place < length ? static_cast<std::size_t>(place) : size;
  };
  const Value none = Value::undefined(fmt::format("'{} object' has no element {}", object.type_name(), *at));
  if (list != nullptr) {
    const std::size_t place = pick(list->items.size());
    return place < list->items.size() ? list->items[place] : none;
  }
  const auto letters = characters(*object.as_string());
  const std::size_t place = pick(letters.size());
  return place < letters.size() ? Value::string(std::string(letters[place])) : none;
}

namespace {

// Python's slice.indices: which positions of `length` a slice takes.
struct SliceRange {
  std::int64_t start;
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
  return {first, step > 0 ? stride : -stride, count};
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
    if (!parts[i]) return unsupported(expr.offset, fmt::format("a slice bound of type {}", part.type_name()));
  }
  HONE_TRY(require_defined(expr.offset, object));
  HONE_TRY(charge(expr.offset, 16 * static_cast<std::uint64_t>(object.size())));
  const std::int64_t step = parts[2].value_or(1);
  if (step == 0) return error(expr.offset, "slice step cannot be zero");
  const List* list = object.as_list();
  if ((list == nullptr || list->shape == Shape::View) && object.as_string() == nullptr) {
    return unsupported(expr.offset, fmt::format("a slice of a {}", object.type_name()));
  }
  if (list != nullptr) {
    const SliceRange range =
        slice_range(static_cast<std::int64_t>(list->items.size()), parts[0], parts[1], step);
    std::vector<Value> items;
    items.reserve(static_cast<std::size_t>(range.count));
    for (std::int64_t i = 0; i < range.count; ++i) {
      items.push_back(list->items[static_cast<std::size_t>(range.start + i * range.step)]);
    }
    return make_list(list->shape, std::move(items));
  }
  const auto letters = characters(*object.as_string());
  const SliceRange range = slice_range(static_cast<std::int64_t>(letters.size()), parts[0], parts[1], step);
  std::string out;
  for (std::int64_t i = 0; i < range.count; ++i) {
    out += letters[static_cast<std::size_t>(range.start + i * range.step)];
  }
  return Value::string(std::move(out));
}

Result<Value> Evaluator::evaluate_call(const Expr& expr) {
  const Expr& callee = *expr.children[0];
  if (callee.kind == ExprKind::Attribute) {
    const Value object = HONE_TRY(evaluate(*callee.children[0]));
    HONE_TRY(require_defined(callee.offset, object));
    const Arguments arguments = HONE_TRY(evaluate_arguments(expr));
    HONE_TRY(charge(expr.offset, object.size()));
    return call_method(*this, callee.offset, object, callee.text, arguments);
  }
  const Value function = HONE_TRY(evaluate(callee));
  HONE_TRY(require_defined(callee.offset, function));
  const Arguments arguments = HONE_TRY(evaluate_arguments(expr));
  if (function.as_function() == nullptr) {
    return unsupported(callee.offset, fmt::format("a call of a value of type {}", function.type_name()));
  }
  return call_function(*this, callee.offset, *function.as_function(), arguments);
}

}  // namespace hone::jinja
