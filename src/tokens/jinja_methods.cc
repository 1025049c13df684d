// Methods of strings and mappings, and the string operations below them.
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_source.h"
#include "tokens/jinja_strings.h"
#include "tokens/utf8.h"

namespace hone::jinja {

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  // memmem is linear; std::string_view::find is not.
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

Result<Value> strip(const Call& call, std::string_view text, const Value* chars, bool left, bool right) {
  if (chars == nullptr || chars->is_none()) {
    if (right) text = strip_right(text);
    if (left) text.remove_prefix(leading_space(text));
    return Value::string(std::string(text));
  }
  const std::string* set = chars->as_string();
  if (set == nullptr) return call.error(fmt::format("{} takes a string", call.what));
  HONE_TRY(call.evaluator.charge(call.offset, set->size() * (1 + text.size() / 16)));
  const std::vector<std::string_view> members = characters(*set);
  const std::vector<std::string_view> letters = characters(text);
  const auto is_member = [&](std::string_view c) {
    return std::find(members.begin(), members.end(), c) != members.end();
  };
  std::size_t begin = 0;
  std::size_t end = letters.size();
  while (left && begin < end && is_member(letters[begin])) ++begin;
  while (right && begin < end && is_member(letters[end - 1])) --end;
  std::string out;
  for (std::size_t i = begin; i < end; ++i) out += letters[i];
  return Value::string(std::move(out));
}

Result<Value> change_case(const Call& call, std::string_view text, bool upper) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) >= 0x80) return call.unsupported("of letters beyond ASCII");
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return Value::string(std::move(out));
}

Result<Value> replace_text(const Call& call, std::string_view text, std::string_view from,
                           std::string_view to, const Value* count) {
  if (from.empty()) return call.unsupported("of an empty string");
  std::int64_t left = -1;
  if (count != nullptr && !count->is_none()) {
    if (!count->integral()) return call.error("the count of replacements is an integer");
    left = *count->integral();
  }
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = find_text(text, from); found != std::string_view::npos && left != 0;
       found = find_text(text, from, at)) {
    HONE_TRY(call.evaluator.charge(call.offset, (found - at) + to.size()));
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
    if (left > 0) --left;
  }
  out += text.substr(at);
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

namespace {

using Method = Result<Value> (*)(const Call&, const Value&, const Arguments&);

template <bool kLeft, bool kRight>
Result<Value> method_strip(const Call& call, const Value& object, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.unsupported("with keyword arguments");
  const auto [chars] = HONE_TRY(bind<1>(call, arguments, {"CHARS"}));
  return strip(call, *object.as_string(), chars, kLeft, kRight);
}

template <bool kUpper>
Result<Value> method_case(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return change_case(call, *object.as_string(), kUpper);
}

template <bool kStart>
Result<Value> method_affix(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [affix] = HONE_TRY(bind<1>(call, arguments, {"AFFIX"}));
  if (affix == nullptr) return call.error(fmt::format("{} needs an argument", call.what));
  const std::string& text = *object.as_string();
  const auto fits = [&](const std::string& part) {
    return kStart ? text.starts_with(part) : text.ends_with(part);
  };
  if (const std::string* part = affix->as_string()) return Value::boolean(fits(*part));
  const List* parts = affix->as_list();
  if (parts == nullptr || parts->shape != Shape::Tuple) {
    return call.error(fmt::format("{} takes a string or a tuple of strings", call.what));
  }
  bool any = false;
  for (const Value& part : parts->items) {
    HONE_TRY(call.evaluator.charge(call.offset, part.size()));
    if (part.as_string() == nullptr) return call.error(fmt::format("{} takes strings", call.what));
    any = any || fits(*part.as_string());
  }
  return Value::boolean(any);
}

// str.split() without a separator: runs of white space part the words.
std::vector<Value> split_at_space(std::string_view text, std::int64_t limit) {
  std::vector<Value> out;
  text.remove_prefix(leading_space(text));
  while (!text.empty()) {
    std::size_t end = 0;
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(Value::string(std::string(text)));
      break;
    }
    while (end < text.size() && leading_space(text.substr(end)) == 0)
      end += utf8_step(text.substr(end)).length;
    out.push_back(Value::string(std::string(text.substr(0, end))));
    text.remove_prefix(end);
    text.remove_prefix(leading_space(text));
  }
  return out;
}

Result<Value> method_split(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [separator, limit] = HONE_TRY(bind<2>(call, arguments, {"sep", "maxsplit"}));
  if (limit != nullptr && !limit->integral()) return call.error("maxsplit is an integer");
  const std::int64_t most = limit == nullptr ? -1 : *limit->integral();
  const std::string& text = *object.as_string();
  HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(text.size())));
  if (separator == nullptr || separator->is_none()) {
    return call.evaluator.bounded(call.offset, make_list(Shape::List, split_at_space(text, most)));
  }
  const std::string* part = separator->as_string();
  if (part == nullptr) return call.error("must be str or None");
  if (part->empty()) return call.error("empty separator");
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::size_t found = find_text(text, *part); found != std::string::npos;
       found = find_text(text, *part, at)) {
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) break;
    out.push_back(Value::string(text.substr(at, found - at)));
    at = found + part->size();
  }
  out.push_back(Value::string(text.substr(at)));
  return call.evaluator.bounded(call.offset, make_list(Shape::List, std::move(out)));
}

Result<Value> method_replace(const Call& call, const Value& object, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.unsupported("with keyword arguments");
  const auto [from, to, count] = HONE_TRY(bind<3>(call, arguments, {"OLD", "NEW", "COUNT"}));
  if (from == nullptr || to == nullptr || from->as_string() == nullptr || to->as_string() == nullptr) {
    return call.error("replace takes two strings");
  }
  return replace_text(call, *object.as_string(), *from->as_string(), *to->as_string(), count);
}

Result<Value> method_get(const Call& call, const Value& object, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("get() takes no keyword arguments");
  const auto [key, fallback] = HONE_TRY(bind<2>(call, arguments, {"KEY", "DEFAULT"}));
  if (key == nullptr) return call.error("get expected at least 1 argument");
  if (key->as_list() != nullptr || key->as_dict() != nullptr) return call.unsupported("with this key");
  const Value* found = key->as_string() == nullptr ? nullptr : object.as_dict()->find(*key->as_string());
  if (found != nullptr) return *found;
  return fallback == nullptr ? Value::none() : *fallback;
}

enum class Part : std::uint8_t { Keys, Values, Items };

template <Part kPart>
Result<Value> method_view(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(object.size())));
  std::vector<Value> out;
  for (const auto& [key, value] : object.as_dict()->items) {
    if (kPart == Part::Keys) out.push_back(Value::string(key));
    if (kPart == Part::Values) out.push_back(value);
    if (kPart == Part::Items) out.push_back(make_list(Shape::Tuple, {Value::string(key), value}));
  }
  return call.evaluator.bounded(call.offset, make_list(Shape::View, std::move(out)));
}

constexpr std::array<std::pair<std::string_view, Method>, 9> kStringMethods{{
    {"strip", method_strip<true, true>},
    {"lstrip", method_strip<true, false>},
    {"rstrip", method_strip<false, true>},
    {"split", method_split},
    {"startswith", method_affix<true>},
    {"endswith", method_affix<false>},
    {"upper", method_case<true>},
    {"lower", method_case<false>},
    {"replace", method_replace},
}};

constexpr std::array<std::pair<std::string_view, Method>, 4> kDictMethods{{
    {"get", method_get},
    {"items", method_view<Part::Items>},
    {"keys", method_view<Part::Keys>},
    {"values", method_view<Part::Values>},
}};

// All public attributes of Python's types (3.12 and before), supported here or not.
constexpr std::array<std::string_view, 47> kStringAttributes{
    "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
    "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
    "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
    "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
    "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
    "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
    "swapcase",   "title",        "translate",    "upper",   "zfill"};
constexpr std::array<std::string_view, 11> kDictAttributes{
    "clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"};
constexpr std::array<std::string_view, 11> kListAttributes{
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 14> kNumberAttributes{
    "as_integer_ratio", "bit_count", "bit_length", "conjugate",  "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",       "is_integer",
    "numerator",        "real",      "to_bytes",   "from_number"};
constexpr std::array<std::string_view, 8> kViewAttributes{"count", "index", "isdisjoint", "mapping",
                                                          "start", "step",  "stop",       "send"};

template <class Table>
bool has(const Table& table, std::string_view name) {
  return std::find(table.begin(), table.end(), name) != table.end();
}

template <class Table>
Method find_method(const Table& table, std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.first == name; });
  return row == table.end() ? nullptr : row->second;
}

}  // namespace

bool shadows_item(const Value& value, std::string_view name) {
  if (value.is_huge()) return true;
  // Every Python object has names with two underscores; the sandbox has rules of its own for one.
  if (name.starts_with("__") || (name.starts_with('_') && value.as_dict() == nullptr)) return true;
  if (value.as_string() != nullptr) return has(kStringAttributes, name);
  if (value.as_dict() != nullptr) return has(kDictAttributes, name);
  if (const List* list = value.as_list()) {
    return list->shape == Shape::View ? has(kViewAttributes, name) : has(kListAttributes, name);
  }
  return value.number().has_value() && has(kNumberAttributes, name);
}

Result<Value> call_method(Evaluator& evaluator, std::uint32_t offset, const Value& object,
                          std::string_view name, const Arguments& arguments) {
  const std::string what = fmt::format("method '{}' of a {}", name, object.type_name());
  Method method = nullptr;
  if (object.as_string() != nullptr) method = find_method(kStringMethods, name);
  if (object.as_dict() != nullptr) method = find_method(kDictMethods, name);
  const bool nothing_there = method == nullptr && !object.is_object() && !shadows_item(object, name);
  if (nothing_there && (object.as_dict() == nullptr || object.as_dict()->find(name) == nullptr)) {
    return evaluator.error(offset,
                           fmt::format("'{} object' has no attribute '{}'", object.type_name(), name));
  }
  if (method == nullptr) return evaluator.unsupported(offset, what);
  return method(Call{evaluator, offset, what}, object, arguments);
}

}  // namespace hone::jinja
