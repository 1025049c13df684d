// Values of a template: Python's, as far as templates see them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "tokens/jinja_integer.h"

namespace hone::jinja {

class Value;
struct Statement;
struct Scope;
class ItemSource;

// Bytes that the strings, lists and mappings of this thread's templates hold now: what Fuel::memory_bytes
// bounds.
std::int64_t live_bytes();

// Counted in live_bytes for as long as it lives.
class Footprint {
 public:
  explicit Footprint(std::size_t bytes);
  Footprint(const Footprint&) = delete;
  Footprint& operator=(const Footprint&) = delete;
  ~Footprint();
  void grow(std::size_t bytes);

 private:
  std::int64_t bytes_;
};

struct NoneType {
  bool operator==(const NoneType&) const = default;
};

struct Text {
  explicit Text(std::string value) : text(std::move(value)), footprint(text.capacity() + 64) {}
  std::string text;
  Footprint footprint;
};

// What a missing name or item gives; `message` is the error of whoever needs a value.
struct Undefined {
  std::shared_ptr<const Text> message;
};

// A string marked as safe HTML (`escape`, `safe`): prints as it is; hone knows little else of it.
struct Markup {
  std::shared_ptr<const Text> text;
};

enum class Function : std::uint8_t { Range, Namespace, Dict, RaiseException, Joiner, Cycler, StrftimeNow };

enum class Shape : std::uint8_t {
  List,
  Tuple,
  Group,   // what groupby gives: a tuple whose elements have the names grouper and list
  Keys,    // dict_keys
  Values,  // dict_values
  Items,   // dict_items
  Range,
};

struct List {
  List(Shape kind, std::vector<Value> values);
  bool is_tuple() const { return shape == Shape::Tuple || shape == Shape::Group; }
  // Can be indexed: no view of a mapping.
  bool is_sequence() const { return shape == Shape::List || shape == Shape::Range || is_tuple(); }
  std::string_view type_name() const;

  Shape shape;
  std::vector<Value> items;
  std::array<std::int64_t, 3> range{};  // Range: start, stop, step
  std::int32_t depth = 1;               // 1 + that of the deepest item
  std::int64_t weight = 1;              // see Value::weight
  Footprint footprint;
};

// Keys are strings, in the order of insertion.
struct Dict {
  explicit Dict(std::vector<std::pair<std::string, Value>> values);
  const Value* find(std::string_view key) const;

  std::vector<std::pair<std::string, Value>> items;
  std::int32_t depth = 1;
  std::int64_t weight = 1;
  Footprint footprint;
};

// Mutable, shared; a cycle through one is taken apart when the template ends (Evaluator::~Evaluator).
struct Namespace {
  explicit Namespace(std::vector<std::pair<std::string, Value>> values);
  Value* find(std::string_view name);
  void add(std::string name, Value value);

  std::vector<std::pair<std::string, Value>> items;
  Footprint footprint;
};

// An iterator of Python: what was taken from it is gone. All items are worked out beforehand; what went wrong
// after the last of them is the error of whoever asks for the next.
struct Generator {
  Generator(std::vector<Value> values, std::optional<Error> error);
  std::vector<Value> items;
  std::size_t at = 0;
  std::optional<Error> failure;
  Footprint footprint;
};

// The `loop` variable.
struct Loop {
  std::shared_ptr<ItemSource> source;
  std::int64_t index = -1;        // of the current item
  std::vector<Value> neighbours;  // previous, current, next: see jinja_loop.cc
  bool has_previous = false;
  bool has_next = false;
  std::optional<std::int64_t> length;
  std::optional<std::vector<Value>> changed;
  std::int32_t depth = 1;
  const Statement* recursive = nullptr;  // the `for` that may be entered again, and where its names live
  Scope* scope = nullptr;
};

// A macro, or the body of a call block. Scopes that a macro needs live as long as the template runs.
struct Macro {
  const Statement* statement = nullptr;
  Scope* scope = nullptr;
};

// A method that is not called yet; hone may lack it.
struct Method;

// joiner(separator): nothing the first time, then the separator. cycler(a, b, ..).
struct Counter {
  bool is_joiner = false;
  std::vector<Value> items;
  std::size_t at = 0;
  Footprint footprint{256};
};

class Value {
 public:
  using TextPtr = std::shared_ptr<const Text>;
  using IntegerPtr = std::shared_ptr<const BigInteger>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;
  using NamespacePtr = std::shared_ptr<Namespace>;
  using GeneratorPtr = std::shared_ptr<Generator>;
  using LoopPtr = std::shared_ptr<Loop>;
  using CounterPtr = std::shared_ptr<Counter>;
  using MethodPtr = std::shared_ptr<const Method>;

  Value() = default;
  static Value undefined(std::string message) {
    return Value(Undefined{std::make_shared<const Text>(std::move(message))});
  }
  static Value none() { return Value(NoneType{}); }
  static Value boolean(bool value) { return Value(value); }
  static Value integer(std::int64_t value) { return Value(value); }
  // 64 bits where they are enough.
  static Value integer(BigInteger value);
  static Value real(double value) { return Value(value); }
  static Value string(std::string value) { return Value(std::make_shared<const Text>(std::move(value))); }
  static Value markup(std::string value) {
    return Value(Markup{std::make_shared<const Text>(std::move(value))});
  }
  static Value list(ListPtr value) { return Value(std::move(value)); }
  static Value dict(DictPtr value) { return Value(std::move(value)); }
  static Value name_space(NamespacePtr value) { return Value(std::move(value)); }
  static Value generator(std::vector<Value> items, std::optional<Error> failure = std::nullopt) {
    return Value(std::make_shared<Generator>(std::move(items), std::move(failure)));
  }
  static Value loop(LoopPtr value) { return Value(std::move(value)); }
  static Value function(Function value) { return Value(value); }
  static Value macro(Macro value) { return Value(value); }
  static Value method(Value object, std::string name);
  static Value counter(CounterPtr value) { return Value(std::move(value)); }

  bool is_undefined() const { return std::holds_alternative<Undefined>(state_); }
  bool is_none() const { return std::holds_alternative<NoneType>(state_); }
  // nullptr if the value is of another type.
  const Undefined* as_undefined() const { return std::get_if<Undefined>(&state_); }
  const bool* as_boolean() const { return std::get_if<bool>(&state_); }
  const double* as_real() const { return std::get_if<double>(&state_); }
  const std::string* as_string() const {
    const Text* text = pointee<TextPtr>();
    return text == nullptr ? nullptr : &text->text;
  }
  const std::string* as_markup() const {
    const auto* p = std::get_if<Markup>(&state_);
    return p == nullptr ? nullptr : &p->text->text;
  }
  const List* as_list() const { return pointee<ListPtr>(); }
  const Dict* as_dict() const { return pointee<DictPtr>(); }
  Namespace* as_namespace() const { return pointee<NamespacePtr>(); }
  Generator* as_generator() const { return pointee<GeneratorPtr>(); }
  Loop* as_loop() const { return pointee<LoopPtr>(); }
  const Function* as_function() const { return std::get_if<Function>(&state_); }
  const Macro* as_macro() const { return std::get_if<Macro>(&state_); }
  const Method* as_method() const { return pointee<MethodPtr>(); }
  Counter* as_counter() const { return pointee<CounterPtr>(); }
  ListPtr list_pointer() const {
    const auto* p = std::get_if<ListPtr>(&state_);
    return p == nullptr ? nullptr : *p;
  }
  GeneratorPtr generator_pointer() const {
    const auto* p = std::get_if<GeneratorPtr>(&state_);
    return p == nullptr ? nullptr : *p;
  }

  // An int of Python, without booleans.
  bool is_integer() const { return std::holds_alternative<std::int64_t>(state_) || as_big() != nullptr; }
  const BigInteger* as_big() const { return pointee<IntegerPtr>(); }
  // An int, a bool or a float.
  bool is_number() const { return is_integer() || as_boolean() != nullptr || as_real() != nullptr; }
  // Integers of 64 bits, and booleans, which count as 0 and 1.
  std::optional<std::int64_t> integral() const;
  // Integers of any size, and booleans.
  std::optional<BigInteger> any_integral() const;
  // Any number, rounded to a double.
  std::optional<double> number() const;
  bool is_callable() const {
    return as_function() != nullptr || as_macro() != nullptr || as_method() != nullptr ||
           as_loop() != nullptr || (as_counter() != nullptr && as_counter()->is_joiner);
  }
  // Python's `is`, where it does not depend on how Python keeps its objects; nullopt where it does.
  std::optional<bool> same_as(const Value& other) const;

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
  using State =
      std::variant<Undefined, NoneType, bool, std::int64_t, IntegerPtr, double, TextPtr, Markup, ListPtr,
                   DictPtr, NamespacePtr, GeneratorPtr, LoopPtr, Function, Macro, MethodPtr, CounterPtr>;

  template <class T>
  explicit Value(T state) : state_(std::move(state)) {}

  template <class Pointer>
  auto pointee() const -> typename Pointer::element_type* {
    const auto* p = std::get_if<Pointer>(&state_);
    return p == nullptr ? nullptr : p->get();
  }

  State state_;
};

struct Method {
  Value object;
  std::string name;
  Footprint footprint{128};
};

Value make_list(Shape shape, std::vector<Value> items);
Value make_dict(std::vector<std::pair<std::string, Value>> items);

// Python's ==; nullopt where hone does not know it (views).
std::optional<bool> equal(const Value& a, const Value& b);
// Python's order as -1, 0, 1; nullopt where Python has none, or hone does not know it (NaN).
std::optional<int> order(const Value& a, const Value& b);

// Python's repr of a float: the shortest digits that give it back.
std::string float_text(double value);

// str(value) and repr(value), appended. False if the value has a part whose text hone does not know.
bool append_text(std::string& out, const Value& value);
bool append_repr(std::string& out, const Value& value);
// Longer integers have no text in Python, which refuses the quadratic work.
inline constexpr std::size_t kMostDigits = 4300;

struct JsonStyle {
  std::optional<std::string> indent;
  bool sort_keys = false;
  bool ensure_ascii = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::size_t limit = std::size_t{64} << 20;  // bytes; writing stops beyond
};

// json.dumps(value, ...). On failure the type that JSON lacks.
std::optional<std::string_view> append_json(std::string& out, const Value& value, const JsonStyle& style);

// Characters as strings of their own.
std::vector<std::string_view> characters(std::string_view text);
std::size_t count_characters(std::string_view text);

}  // namespace hone::jinja
