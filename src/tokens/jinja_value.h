// Values of a template: Python's, as far as templates see them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hone::jinja {

class Value;

struct NoneType {
  bool operator==(const NoneType&) const = default;
};

// What a missing name or item gives; `message` is the error of whoever needs a value.
struct Undefined {
  std::shared_ptr<const std::string> message;
};

// A number of the context that is 2^63 or more: the JSON reader makes a float of a longer integer, so its
// value is not known. It may be passed by; whatever looks at it is refused.
struct HugeNumber {};

enum class Function : std::uint8_t { Range, Namespace, Dict, RaiseException };

enum class Shape : std::uint8_t {
  List,
  Tuple,
  View,  // dict_items and the like, range: can be iterated, not printed or indexed
};

struct List {
  Shape shape = Shape::List;
  std::vector<Value> items;
  std::int32_t depth = 1;      // 1 + that of the deepest item
  std::int64_t weight = 1;     // see Value::weight
  bool holds_objects = false;  // a namespace, loop or function somewhere inside
};

// Keys are strings, in the order of insertion.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;
  std::int32_t depth = 1;
  std::int64_t weight = 1;
  bool holds_objects = false;

  const Value* find(std::string_view key) const;
};

// Mutable, shared. Holds no objects, so there are no cycles.
struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
};

// The `loop` variable; `index` moves on.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
};

class Value {
 public:
  using String = std::shared_ptr<const std::string>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;
  using NamespacePtr = std::shared_ptr<Namespace>;
  using LoopPtr = std::shared_ptr<Loop>;

  Value() = default;
  static Value undefined(std::string message) {
    Value out;
    out.state_ = Undefined{std::make_shared<const std::string>(std::move(message))};
    return out;
  }
  static Value none() { return Value(NoneType{}); }
  static Value boolean(bool value) { return Value(value); }
  static Value integer(std::int64_t value) { return Value(value); }
  static Value real(double value) { return Value(value); }
  static Value string(std::string value) {
    return Value(std::make_shared<const std::string>(std::move(value)));
  }
  static Value list(ListPtr value) { return Value(std::move(value)); }
  static Value dict(DictPtr value) { return Value(std::move(value)); }
  static Value name_space(NamespacePtr value) { return Value(std::move(value)); }
  static Value loop(LoopPtr value) { return Value(std::move(value)); }
  static Value huge_number() { return Value(HugeNumber{}); }
  static Value function(Function value) { return Value(value); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(state_); }
  bool is_huge() const { return std::holds_alternative<HugeNumber>(state_); }
  bool is_none() const { return std::holds_alternative<NoneType>(state_); }
  // nullptr if the value is of another type.
  const Undefined* as_undefined() const { return std::get_if<Undefined>(&state_); }
  const bool* as_boolean() const { return std::get_if<bool>(&state_); }
  const std::int64_t* as_integer() const { return std::get_if<std::int64_t>(&state_); }
  const double* as_real() const { return std::get_if<double>(&state_); }
  const std::string* as_string() const { return pointee<String>(); }
  const List* as_list() const { return pointee<ListPtr>(); }
  const Dict* as_dict() const { return pointee<DictPtr>(); }
  const Namespace* as_namespace() const { return pointee<NamespacePtr>(); }
  Namespace* mutable_namespace() const {
    const auto* p = std::get_if<NamespacePtr>(&state_);
    return p == nullptr ? nullptr : p->get();
  }
  const Loop* as_loop() const { return pointee<LoopPtr>(); }
  const Function* as_function() const { return std::get_if<Function>(&state_); }
  ListPtr list_pointer() const {
    const auto* p = std::get_if<ListPtr>(&state_);
    return p == nullptr ? nullptr : *p;
  }
  // Integers and booleans, which count as 0 and 1.
  std::optional<std::int64_t> integral() const;
  std::optional<double> number() const;

  bool is_object() const {
    return as_namespace() != nullptr || as_loop() != nullptr || as_function() != nullptr || is_huge();
  }
  bool holds_objects() const;
  std::int32_t depth() const;
  // Python's name: "str", "int", "NoneType", ...
  std::string_view type_name() const;
  bool truth() const;
  // Elements or bytes: what copying it costs.
  std::size_t size() const;
  // Values and bytes in all, an item that is shared counted at each place: what printing or comparing it
  // costs.
  std::int64_t weight() const;

 private:
  using State = std::variant<Undefined, NoneType, bool, std::int64_t, double, String, ListPtr, DictPtr,
                             NamespacePtr, LoopPtr, HugeNumber, Function>;

  template <class T>
  explicit Value(T state) : state_(std::move(state)) {}

  template <class Pointer>
  auto pointee() const -> const typename Pointer::element_type* {
    const auto* p = std::get_if<Pointer>(&state_);
    return p == nullptr ? nullptr : p->get();
  }

  State state_;
};

// With depth, weight and holds_objects worked out.
Value make_list(Shape shape, std::vector<Value> items);
Value make_dict(std::vector<std::pair<std::string, Value>> items);

// Python's ==; nullopt where hone does not know it (views).
std::optional<bool> equal(const Value& a, const Value& b);

// Python's repr of a float: the shortest digits that give it back.
std::string float_text(double value);

// str(value) and repr(value), appended. False if the value has a part whose text hone does not know (objects,
// views). repr escapes what Unicode does not call printable.
bool append_text(std::string& out, const Value& value);
bool append_repr(std::string& out, const Value& value);

struct JsonStyle {
  std::optional<std::int64_t> indent;
  bool sort_keys = false;
};

// json.dumps(value, ensure_ascii=False, ...). On failure the type that JSON lacks.
std::optional<std::string_view> append_json(std::string& out, const Value& value, const JsonStyle& style);

// Characters as strings of their own.
std::vector<std::string_view> characters(std::string_view text);
std::size_t count_characters(std::string_view text);

}  // namespace hone::jinja
