// Methods of strings, mappings, sequences and numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_source.h"
#include "tokens/jinja_strings.h"
#include "tokens/unicode_class.h"
#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

using MethodFunction = Result<Value> (*)(const Call&, const Value&, const Arguments&);
struct MethodRow {
  std::string_view name;
  MethodFunction function;  // nullptr: Python has it, hone does not
};

Result<const std::string*> text_argument(const Call& call, const Value* value) {
  if (value == nullptr) return call.error(fmt::format("{} needs an argument", call.what));
  HONE_TRY(call.evaluator.require_defined(call.offset, *value));
  if (value->as_markup() != nullptr) return call.unsupported("of text that is marked as safe");
  if (value->as_string() == nullptr) {
    return call.error(fmt::format("{} takes a str, not {}", call.what, value->type_name()));
  }
  return value->as_string();
}

template <bool kLeft, bool kRight>
Result<Value> method_strip(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [chars] = HONE_TRY(bind<1>(call, arguments, {"CHARS"}));
  return strip(call, *object.as_string(), chars, kLeft, kRight);
}

Result<Value> method_upper(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 8 * object.size()));
  return Value::string(change_case(*object.as_string(), LetterCase::Upper));
}

Result<Value> method_lower(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 8 * object.size()));
  return Value::string(change_case(*object.as_string(), LetterCase::Lower));
}

Result<Value> method_title(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 16 * object.size()));
  return Value::string(title_words(*object.as_string()));
}

Result<Value> method_capitalize(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 8 * object.size()));
  return Value::string(capitalize(*object.as_string()));
}

Result<Value> method_swapcase(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  std::string out;
  HONE_TRY(call.evaluator.charge(call.offset, 16 * object.size()));
  for (std::string_view left = *object.as_string(); !left.empty();) {
    const Utf8Step step = utf8_step(left);
    const auto upper = has_property(step.code_point, UnicodeProperty::Uppercase);
    if (!upper || step.code_point == 0x3A3) return call.unsupported("of these characters");
    append_case(out, step.code_point, *upper ? LetterCase::Lower : LetterCase::Upper);
    left.remove_prefix(step.length);
  }
  return Value::string(std::move(out));
}

// [start, end) in characters, of find, count and the like: the bytes of the part, and where it begins.
Result<std::string_view> part_of(const Call& call, const std::string& text, const Value* start,
                                 const Value* end, std::int64_t& first) {
  const auto length = static_cast<std::int64_t>(count_characters(text));
  const auto place = [&](const Value* value, std::int64_t otherwise) -> Result<std::int64_t> {
    if (value == nullptr || value->is_none()) return otherwise;
    if (!value->integral()) return call.error("slice indices must be integers or None");
    const std::int64_t at = *value->integral();
    return at < 0 ? std::max(at + length, std::int64_t{0}) : at;
  };
  first = HONE_TRY(place(start, 0));
  const std::int64_t last = std::min(HONE_TRY(place(end, length)), length);
  if (first > last) {
    first = -1;
    return std::string_view();
  }
  std::string_view out = text;
  out.remove_prefix(first_characters(out, static_cast<std::size_t>(first)).size());
  return first_characters(out, static_cast<std::size_t>(last - first));
}

template <bool kStart>
Result<Value> method_affix(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [affix, start, end] = HONE_TRY(bind<3>(call, arguments, {"AFFIX", "START", "END"}));
  if (affix == nullptr) return call.error(fmt::format("{} needs an argument", call.what));
  std::int64_t first = 0;
  const std::string_view text = HONE_TRY(part_of(call, *object.as_string(), start, end, first));
  const auto fits = [&](const std::string& part) {
    return first >= 0 && (kStart ? text.starts_with(part) : text.ends_with(part));
  };
  if (const std::string* part = affix->as_string()) return Value::boolean(fits(*part));
  const List* parts = affix->as_list();
  if (parts == nullptr || !parts->is_tuple()) {
    return call.error(
        fmt::format("{} first arg must be str or a tuple of str, not {}", call.what, affix->type_name()));
  }
  for (const Value& part : parts->items) {
    HONE_TRY(call.evaluator.charge(call.offset, part.size()));
    if (part.as_string() == nullptr) return call.error(fmt::format("{} takes strings", call.what));
    if (fits(*part.as_string())) return Value::boolean(true);
  }
  return Value::boolean(false);
}

enum class Search : std::uint8_t { Find, Rfind, Index, Rindex, Count };

template <Search kSearch>
Result<Value> method_search(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [value, start, end] = HONE_TRY(bind<3>(call, arguments, {"SUB", "START", "END"}));
  const std::string& part = *HONE_TRY(text_argument(call, value));
  std::int64_t first = 0;
  const std::string_view text = HONE_TRY(part_of(call, *object.as_string(), start, end, first));
  HONE_TRY(call.evaluator.charge(call.offset, text.size()));
  if (kSearch == Search::Count) {
    if (first < 0) return Value::integer(0);
    if (part.empty()) return Value::integer(static_cast<std::int64_t>(count_characters(text)) + 1);
    std::int64_t count = 0;
    for (std::size_t at = find_text(text, part); at != std::string_view::npos;
         at = find_text(text, part, at + part.size())) {
      ++count;
    }
    return Value::integer(count);
  }
  std::size_t at = std::string_view::npos;
  if (first >= 0) {
    constexpr bool kLast = kSearch == Search::Rfind || kSearch == Search::Rindex;
    if (kLast) HONE_TRY(call.evaluator.charge(call.offset, text.size() * (part.size() / 16 + 1)));
    at = kLast ? text.rfind(part) : find_text(text, part);
  }
  if (at != std::string_view::npos) {
    return Value::integer(first + static_cast<std::int64_t>(count_characters(text.substr(0, at))));
  }
  if (kSearch == Search::Index || kSearch == Search::Rindex) return call.error("substring not found");
  return Value::integer(-1);
}

// Words between runs of white space: at most `limit` of them split off, from the left or the right.
std::vector<Value> split_at_space(std::string_view text, std::int64_t limit, bool from_right) {
  std::vector<Value> out;
  // White space at the far end belongs to the rest that is not split.
  text = from_right ? strip_right(text) : text.substr(leading_space(text));
  while (!text.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(out.size()) == limit) {
      out.push_back(Value::string(std::string(text)));
      break;
    }
    if (from_right) {
      std::size_t begin = text.size();
      while (begin > 0 && strip_right(text.substr(0, begin)).size() == begin) {
        --begin;
        while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
      }
      out.push_back(Value::string(std::string(text.substr(begin))));
      text = strip_right(text.substr(0, begin));
      continue;
    }
    std::size_t end = 0;
    while (end < text.size() && leading_space(text.substr(end)) == 0)
      end += utf8_step(text.substr(end)).length;
    out.push_back(Value::string(std::string(text.substr(0, end))));
    text.remove_prefix(end);
    text.remove_prefix(leading_space(text));
  }
  return out;
}

std::vector<Value> split_at(std::string_view text, std::string_view part, std::int64_t limit,
                            bool from_right) {
  std::vector<Value> out;
  const auto more = [&] { return limit < 0 || static_cast<std::int64_t>(out.size()) < limit; };
  if (from_right) {
    for (std::size_t at = text.rfind(part); more() && at != std::string_view::npos; at = text.rfind(part)) {
      out.push_back(Value::string(std::string(text.substr(at + part.size()))));
      text = text.substr(0, at);
    }
    out.push_back(Value::string(std::string(text)));
    return out;
  }
  std::size_t begin = 0;
  for (std::size_t at = find_text(text, part); more() && at != std::string_view::npos;
       at = find_text(text, part, begin)) {
    out.push_back(Value::string(std::string(text.substr(begin, at - begin))));
    begin = at + part.size();
  }
  out.push_back(Value::string(std::string(text.substr(begin))));
  return out;
}

template <bool kRight>
Result<Value> method_split(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [separator, limit] = HONE_TRY(bind<2>(call, arguments, {"sep", "maxsplit"}));
  if (limit != nullptr && !limit->integral()) {
    return call.error(fmt::format("'{}' object cannot be interpreted as an integer", limit->type_name()));
  }
  const std::int64_t most = limit == nullptr ? -1 : *limit->integral();
  const std::string& text = *object.as_string();
  HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(text.size())));
  std::vector<Value> out;
  if (separator == nullptr || separator->is_none()) {
    out = split_at_space(text, most, kRight);
  } else {
    const std::string& part = *HONE_TRY(text_argument(call, separator));
    if (part.empty()) return call.error("empty separator");
    if (kRight) HONE_TRY(call.evaluator.charge(call.offset, text.size() * (part.size() / 16 + 1)));
    out = split_at(text, part, most, kRight);
  }
  if (kRight) std::reverse(out.begin(), out.end());
  return call.evaluator.bounded(call.offset, make_list(Shape::List, std::move(out)));
}

Result<Value> method_splitlines(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [keep] = HONE_TRY(bind<1>(call, arguments, {"keepends"}));
  HONE_TRY(call.evaluator.charge(call.offset, 16 * object.size()));
  std::vector<Value> out;
  for (const std::string_view line : split_lines(*object.as_string(), keep != nullptr && keep->truth())) {
    out.push_back(Value::string(std::string(line)));
  }
  return call.evaluator.bounded(call.offset, make_list(Shape::List, std::move(out)));
}

template <bool kLast>
Result<Value> method_partition(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [value] = HONE_TRY(bind<1>(call, arguments, {"SEP"}));
  const std::string& part = *HONE_TRY(text_argument(call, value));
  if (part.empty()) return call.error("empty separator");
  const std::string& text = *object.as_string();
  HONE_TRY(call.evaluator.charge(call.offset, text.size() * (kLast ? part.size() / 16 + 1 : 1)));
  const std::size_t at = kLast ? text.rfind(part) : find_text(text, part);
  const bool found = at != std::string::npos;
  const Value none = Value::string("");
  if (!found) {
    const Value whole = Value::string(text);
    return make_list(Shape::Tuple,
                     kLast ? std::vector<Value>{none, none, whole} : std::vector<Value>{whole, none, none});
  }
  return make_list(Shape::Tuple, {Value::string(text.substr(0, at)), Value::string(part),
                                  Value::string(text.substr(at + part.size()))});
}

Result<Value> method_replace(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [from, to, count] = HONE_TRY(bind<3>(call, arguments, {"OLD", "NEW", "COUNT"}));
  const std::string& old = *HONE_TRY(text_argument(call, from));
  const std::string& with = *HONE_TRY(text_argument(call, to));
  return replace_text(call, *object.as_string(), old, with, count);
}

template <bool kPrefix>
Result<Value> method_remove(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [value] = HONE_TRY(bind<1>(call, arguments, {"AFFIX"}));
  const std::string& part = *HONE_TRY(text_argument(call, value));
  std::string_view text = *object.as_string();
  if (kPrefix && text.starts_with(part)) text.remove_prefix(part.size());
  if (!kPrefix && text.ends_with(part)) text.remove_suffix(part.size());
  return Value::string(std::string(text));
}

Result<Value> method_join(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [value] = HONE_TRY(bind<1>(call, arguments, {"ITERABLE"}));
  if (value == nullptr) return call.error("join needs an argument");
  const Value::ListPtr items = HONE_TRY(call.evaluator.iterate(call.offset, *value));
  std::string out;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    const std::string* part = items->items[i].as_string();
    if (part == nullptr) {
      return call.error(
          fmt::format("sequence item {}: expected str instance, {} found", i, items->items[i].type_name()));
    }
    HONE_TRY(call.evaluator.charge(call.offset, part->size() + object.size()));
    if (i > 0) out += *object.as_string();
    out += *part;
    HONE_TRY(call.evaluator.check_size(call.offset, out.size()));
  }
  return Value::string(std::move(out));
}

template <Align kAlign>
Result<Value> method_pad(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [width, fill] = HONE_TRY(bind<2>(call, arguments, {"WIDTH", "FILL"}));
  return pad(call, *object.as_string(), width, fill, kAlign);
}

Result<Value> method_zfill(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [width] = HONE_TRY(bind<1>(call, arguments, {"WIDTH"}));
  std::string_view text = *object.as_string();
  const std::string sign(text.substr(0, text.starts_with('-') || text.starts_with('+') ? 1 : 0));
  text.remove_prefix(sign.size());
  if (width == nullptr || !width->integral()) return call.error("zfill takes a width");
  const Value zero = Value::string("0");
  const Value rest = Value::integer(*width->integral() - static_cast<std::int64_t>(sign.size()));
  const Value padded = HONE_TRY(pad(call, text, &rest, &zero, Align::Right));
  return Value::string(sign + *padded.as_string());
}

Result<Value> method_format(const Call& call, const Value& object, const Arguments& arguments) {
  return format_braces(call, *object.as_string(), arguments);
}

// True if there are characters and all have the property.
Result<Value> all_characters(const Call& call, const Value& object, const Arguments& arguments,
                             std::optional<bool> (*holds)(char32_t)) {
  HONE_TRY(bind<0>(call, arguments, {}));
  std::string_view text = *object.as_string();
  HONE_TRY(call.evaluator.charge(call.offset, 16 * text.size()));
  if (text.empty()) return Value::boolean(false);
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    const auto is = holds(step.code_point);
    if (!is) return call.unsupported("of these characters");
    if (!*is) return Value::boolean(false);
    text.remove_prefix(step.length);
  }
  return Value::boolean(true);
}

std::optional<bool> is_alpha(char32_t c) {
  return has_property(c, UnicodeProperty::Letter);
}

std::optional<bool> is_decimal(char32_t c) {
  return has_property(c, UnicodeProperty::Decimal);
}

// Superscripts and the like are digits too; which numbers are is not in the properties at hand.
std::optional<bool> is_digit_character(char32_t c) {
  const auto decimal = is_decimal(c);
  if (!decimal || *decimal) return decimal;
  const auto number = has_property(c, UnicodeProperty::Number);
  return number && *number ? std::nullopt : number;
}

std::optional<bool> is_alnum(char32_t c) {
  const auto letter = is_alpha(c);
  return letter && !*letter ? has_property(c, UnicodeProperty::Number) : letter;
}

template <std::optional<bool> (*kHolds)(char32_t)>
Result<Value> method_all(const Call& call, const Value& object, const Arguments& arguments) {
  return all_characters(call, object, arguments, kHolds);
}

template <LetterCase kCase>
Result<Value> method_is_cased(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return Value::boolean(HONE_TRY(is_cased(call, *object.as_string(), kCase)));
}

Result<Value> method_isascii(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string& text = *object.as_string();
  return Value::boolean(
      std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

Result<Value> method_get(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [key, fallback] = HONE_TRY(bind<2>(call, arguments, {"KEY", "DEFAULT"}));
  if (key == nullptr) return call.error("get expected at least 1 argument, got 0");
  if (key->as_list() != nullptr || key->as_dict() != nullptr) {
    return call.error(fmt::format("unhashable type: '{}'", key->type_name()));
  }
  HONE_TRY(call.evaluator.charge(call.offset, object.size()));
  const Value* found = key->as_string() == nullptr ? nullptr : object.as_dict()->find(*key->as_string());
  if (found != nullptr) return *found;
  return fallback == nullptr ? Value::none() : *fallback;
}

template <Shape kShape>
Result<Value> method_view(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 32 * static_cast<std::uint64_t>(object.size())));
  std::vector<Value> out;
  out.reserve(object.size());
  for (const auto& [key, value] : object.as_dict()->items) {
    if (kShape == Shape::Keys) out.push_back(Value::string(key));
    if (kShape == Shape::Values) out.push_back(value);
    if (kShape == Shape::Items) out.push_back(make_list(Shape::Tuple, {Value::string(key), value}));
  }
  return call.evaluator.bounded(call.offset, make_list(kShape, std::move(out)));
}

Result<Value> method_copy(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.charge(call.offset, 16 * static_cast<std::uint64_t>(object.size())));
  if (object.as_dict() != nullptr) return make_dict(object.as_dict()->items);
  return make_list(object.as_list()->shape, object.as_list()->items);
}

template <bool kIndex>
Result<Value> method_places(const Call& call, const Value& object, const Arguments& arguments) {
  const auto [value] = HONE_TRY(bind<1>(call, arguments, {"VALUE"}));
  if (value == nullptr) return call.error(fmt::format("{} needs an argument", call.what));
  std::int64_t count = 0;
  const List& list = *object.as_list();
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (!HONE_TRY(call.evaluator.compare(call.offset, "==", list.items[i], *value))) continue;
    if (kIndex) return Value::integer(static_cast<std::int64_t>(i));
    ++count;
  }
  if (kIndex) return call.error(fmt::format("the value is not in the {}", object.type_name()));
  return Value::integer(count);
}

Result<Value> method_is_integer(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const double value = *object.as_real();
  return Value::boolean(std::isfinite(value) && std::floor(value) == value);
}

Result<Value> method_bit_length(const Call& call, const Value& object, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return Value::integer(static_cast<std::int64_t>(object.any_integral()->bits()));
}

constexpr std::array<MethodRow, 47> kStringMethods{{
    {"capitalize", method_capitalize},
    {"casefold", nullptr},
    {"center", method_pad<Align::Center>},
    {"count", method_search<Search::Count>},
    {"encode", nullptr},
    {"endswith", method_affix<false>},
    {"expandtabs", nullptr},
    {"find", method_search<Search::Find>},
    {"format", method_format},
    {"format_map", nullptr},
    {"index", method_search<Search::Index>},
    {"isalnum", method_all<is_alnum>},
    {"isalpha", method_all<is_alpha>},
    {"isascii", method_isascii},
    {"isdecimal", method_all<is_decimal>},
    {"isdigit", method_all<is_digit_character>},
    {"isidentifier", nullptr},
    {"islower", method_is_cased<LetterCase::Lower>},
    {"isnumeric", method_all<is_digit_character>},
    {"isprintable", nullptr},
    {"isspace", method_all<[](char32_t c) { return std::optional(is_space(c)); }>},
    {"istitle", nullptr},
    {"isupper", method_is_cased<LetterCase::Upper>},
    {"join", method_join},
    {"ljust", method_pad<Align::Left>},
    {"lower", method_lower},
    {"lstrip", method_strip<true, false>},
    {"maketrans", nullptr},
    {"partition", method_partition<false>},
    {"removeprefix", method_remove<true>},
    {"removesuffix", method_remove<false>},
    {"replace", method_replace},
    {"rfind", method_search<Search::Rfind>},
    {"rindex", method_search<Search::Rindex>},
    {"rjust", method_pad<Align::Right>},
    {"rpartition", method_partition<true>},
    {"rsplit", method_split<true>},
    {"rstrip", method_strip<false, true>},
    {"split", method_split<false>},
    {"splitlines", method_splitlines},
    {"startswith", method_affix<true>},
    {"strip", method_strip<true, true>},
    {"swapcase", method_swapcase},
    {"title", method_title},
    {"translate", nullptr},
    {"upper", method_upper},
    {"zfill", method_zfill},
}};

constexpr std::array<MethodRow, 6> kDictMethods{{
    {"copy", method_copy},
    {"fromkeys", nullptr},
    {"get", method_get},
    {"items", method_view<Shape::Items>},
    {"keys", method_view<Shape::Keys>},
    {"values", method_view<Shape::Values>},
}};
constexpr std::array<std::string_view, 5> kDictUnsafe{"clear", "pop", "popitem", "setdefault", "update"};

constexpr std::array<MethodRow, 3> kListMethods{{
    {"copy", method_copy},
    {"count", method_places<false>},
    {"index", method_places<true>},
}};
constexpr std::array<MethodRow, 2> kTupleMethods{
    {{"count", method_places<false>}, {"index", method_places<true>}}};
constexpr std::array<std::string_view, 8> kListUnsafe{"append", "clear",  "extend",  "insert",
                                                      "pop",    "remove", "reverse", "sort"};

constexpr std::array<MethodRow, 1> kFloatMethods{{{"is_integer", method_is_integer}}};
constexpr std::array<MethodRow, 1> kIntegerMethods{{{"bit_length", method_bit_length}}};
constexpr std::array<std::string_view, 13> kNumberOthers{
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator", "from_bytes", "fromhex", "hex",
    "is_integer",       "imag",      "numerator",  "real",      "to_bytes"};
constexpr std::array<std::string_view, 5> kViewOthers{"isdisjoint", "mapping", "start", "stop", "step"};

Result<Value> loop_cycle(const Call& call, const Loop& loop, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("cycle() takes no keyword arguments");
  if (arguments.positional.empty()) return call.error("no items for cycling given");
  return arguments.positional[static_cast<std::size_t>(loop.index) % arguments.positional.size()];
}

Result<Value> loop_changed(const Call& call, Loop& loop, const Arguments& arguments) {
  if (!arguments.named.empty()) return call.error("changed() takes no keyword arguments");
  bool same = loop.changed && loop.changed->size() == arguments.positional.size();
  for (std::size_t i = 0; same && i < arguments.positional.size(); ++i) {
    same = HONE_TRY(call.evaluator.compare(call.offset, "==", (*loop.changed)[i], arguments.positional[i]));
  }
  if (!same) loop.changed = arguments.positional;
  return Value::boolean(!same);
}

Result<Value> cycler_method(const Call& call, Counter& cycler, std::string_view name,
                            const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (name == "reset") {
    cycler.at = 0;
    return Value::none();
  }
  const Value out = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return out;
}

template <class Table>
const MethodRow* find_method(const Table& table, std::string_view name) {
  const auto row = std::find_if(table.begin(), table.end(), [&](const auto& r) { return r.name == name; });
  return row == table.end() ? nullptr : &*row;
}

// The method of the type, or nullptr.
const MethodRow* method_row(const Value& value, std::string_view name) {
  if (value.as_string() != nullptr) return find_method(kStringMethods, name);
  if (value.as_dict() != nullptr) return find_method(kDictMethods, name);
  if (value.as_real() != nullptr) return find_method(kFloatMethods, name);
  if (value.is_integer()) return find_method(kIntegerMethods, name);
  const List* list = value.as_list();
  if (list == nullptr || !list->is_sequence()) return nullptr;
  return list->shape == Shape::List ? find_method(kListMethods, name) : find_method(kTupleMethods, name);
}

template <class Table>
bool has(const Table& table, std::string_view name) {
  return std::find(table.begin(), table.end(), name) != table.end();
}

}  // namespace

Attribute attribute_kind(const Value& value, std::string_view name) {
  if (name.starts_with("__")) return Attribute::Unsafe;
  if (method_row(value, name) != nullptr) return Attribute::Method;
  if (value.as_dict() != nullptr) return has(kDictUnsafe, name) ? Attribute::Unsafe : Attribute::None;
  if (const List* list = value.as_list()) {
    if (list->shape == Shape::List) return has(kListUnsafe, name) ? Attribute::Unsafe : Attribute::None;
    if (name.starts_with('_') && list->shape == Shape::Group) return Attribute::Unsafe;
    return !list->is_tuple() && has(kViewOthers, name) ? Attribute::Other : Attribute::None;
  }
  if (value.is_number()) return has(kNumberOthers, name) ? Attribute::Other : Attribute::None;
  if (const Counter* counter = value.as_counter()) {
    return !counter->is_joiner && (name == "next" || name == "reset") ? Attribute::Method : Attribute::Other;
  }
  const bool plain = value.as_string() != nullptr || value.is_none();
  return plain ? Attribute::None : Attribute::Other;
}

Result<Value> call_method(Evaluator& evaluator, std::uint32_t offset, const Value& object,
                          std::string_view name, const Arguments& arguments) {
  const std::string what = fmt::format("method '{}' of a {}", name, object.type_name());
  const Call call{evaluator, offset, what};
  HONE_TRY(evaluator.charge(offset, object.as_string() != nullptr ? object.size() : 0));
  if (Loop* loop = object.as_loop()) {
    return name == "cycle" ? loop_cycle(call, *loop, arguments) : loop_changed(call, *loop, arguments);
  }
  if (Counter* counter = object.as_counter()) return cycler_method(call, *counter, name, arguments);
  const MethodRow* row = method_row(object, name);
  if (row == nullptr || row->function == nullptr) return evaluator.unsupported(offset, what);
  return row->function(call, object, arguments);
}

}  // namespace hone::jinja
