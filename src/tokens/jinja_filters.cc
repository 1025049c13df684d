// Filters of text and numbers, and the tables of all filters. Filters of sequences:
// jinja_sequence_filters.cc.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_source.h"
#include "tokens/jinja_strings.h"
#include "tokens/unicode_class.h"
#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

Result<Value> filter_trim(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [chars] = HONE_TRY(bind<1>(call, arguments, {"chars"}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  return strip(call, text, chars, true, true);
}

template <LetterCase kCase>
Result<Value> filter_case(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  HONE_TRY(call.evaluator.charge(call.offset, 8 * static_cast<std::uint64_t>(text.size())));
  return call.evaluator.bounded(call.offset, Value::string(change_case(text, kCase)));
}

Result<Value> filter_capitalize(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return Value::string(capitalize(HONE_TRY(call.evaluator.text_of(call.offset, input))));
}

// Words begin after white space and any of - ( { [ <.
Result<Value> filter_title(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  std::string out;
  std::size_t begin = 0;
  const auto is_break = [](char32_t c) {
    return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
  };
  while (begin < text.size()) {
    const Utf8Step first = utf8_step(std::string_view(text).substr(begin));
    std::size_t end = begin + first.length;
    const bool breaks = is_break(first.code_point);
    while (end < text.size()) {
      const Utf8Step step = utf8_step(std::string_view(text).substr(end));
      if (is_break(step.code_point) != breaks) break;
      end += step.length;
    }
    const std::string_view word = std::string_view(text).substr(begin, end - begin);
    out += change_case(word.substr(0, first.length), LetterCase::Upper);
    out += change_case(word.substr(first.length), LetterCase::Lower);
    begin = end;
  }
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> filter_string(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.as_markup() != nullptr) return input;
  return Value::string(HONE_TRY(call.evaluator.text_of(call.offset, input)));
}

Result<Value> filter_default(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [fallback, boolean] = HONE_TRY(bind<2>(call, arguments, {"default_value", "boolean"}));
  const bool use = input.is_undefined() || (boolean != nullptr && boolean->truth() && !input.truth());
  if (!use) return input;
  return fallback == nullptr ? Value::string("") : *fallback;
}

Result<Value> filter_replace(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [old, with, count] = HONE_TRY(bind<3>(call, arguments, {"old", "new", "count"}));
  if (old == nullptr || with == nullptr) return call.error("replace needs what to replace and with what");
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  const std::string from = HONE_TRY(call.evaluator.text_of(call.offset, *old));
  const std::string to = HONE_TRY(call.evaluator.text_of(call.offset, *with));
  return replace_text(call, text, from, to, count);
}

// json.dumps of transformers' filter: (x, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
Result<Value> filter_tojson(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [ascii, indent, separators, sort_keys] =
      HONE_TRY(bind<4>(call, arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.sort_keys = sort_keys != nullptr && sort_keys->truth();
  style.ensure_ascii = ascii != nullptr && ascii->truth();
  if (indent != nullptr && !indent->is_none()) {
    style.item_separator = ",";
    if (const std::string* text = indent->as_string()) {
      if (text->size() > 64) return call.unsupported("with this indent");
      style.indent = *text;
    } else if (const auto width = indent->integral()) {
      if (*width > 64) return call.unsupported("with this indent");
      style.indent = std::string(static_cast<std::size_t>(std::max(*width, std::int64_t{0})), ' ');
    } else {
      return call.error("indent is a number or a string");
    }
  }
  if (separators != nullptr && !separators->is_none()) {
    const Value::ListPtr pair = HONE_TRY(call.evaluator.iterate(call.offset, *separators));
    const bool texts = pair->items.size() == 2 && pair->items[0].as_string() != nullptr &&
                       pair->items[1].as_string() != nullptr;
    if (!texts) return call.error("separators are two strings");
    if (pair->items[0].size() + pair->items[1].size() > 64) return call.unsupported("with these separators");
    style.item_separator = *pair->items[0].as_string();
    style.key_separator = *pair->items[1].as_string();
  }
  HONE_TRY(call.evaluator.charge(call.offset, 8 * static_cast<std::uint64_t>(input.weight())));
  style.limit = static_cast<std::size_t>(call.evaluator.fuel().output_bytes);
  std::string out;
  if (const auto lacking = append_json(out, input, style)) {
    if (out.size() > style.limit) return call.error("a value is too large");
    return call.error(fmt::format("Object of type {} is not JSON serializable", *lacking));
  }
  HONE_TRY(call.evaluator.charge(call.offset, out.size()));
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

// A number as Python's int(text, base) reads it: white space around, a sign, a prefix of the base, single
// underscores.
std::optional<BigInteger> parse_integer(std::string_view text, std::int64_t base) {
  text = strip_right(text);
  text.remove_prefix(leading_space(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  bool prefixed = false;
  if (text.size() > 1 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    const std::int64_t meant = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    prefixed = meant != 0 && (base == meant || base == 0);
    if (prefixed) {
      text.remove_prefix(2);
      base = meant;
    }
  }
  std::string digits;
  bool after_digit = prefixed;
  for (const char c : text) {
    if (c == '_') {
      if (!after_digit) return std::nullopt;
      after_digit = false;
      continue;
    }
    digits += c;
    after_digit = true;
  }
  if (!after_digit || digits.empty() || digits[0] == '-') return std::nullopt;
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos)
      return std::nullopt;
    base = 10;
  }
  if (digits.size() > kMostDigits) return std::nullopt;
  const auto out = BigInteger::parse(digits, static_cast<std::uint32_t>(base));
  return out && negative ? out->negated() : out;
}

// float(text); nullopt where Python raises ValueError.
std::optional<double> parse_float(std::string_view text) {
  text = strip_right(text);
  text.remove_prefix(leading_space(text));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string lower = change_case(text, LetterCase::Lower);
  double out = 0.0;
  if (lower == "inf" || lower == "infinity") {
    out = HUGE_VAL;
  } else if (lower == "nan") {
    out = std::nan("");
  } else {
    std::string digits;
    for (std::size_t i = 0; i < lower.size(); ++i) {
      const bool between = i > 0 && i + 1 < lower.size() &&
                           std::isdigit(static_cast<unsigned char>(lower[i - 1])) != 0 &&
                           std::isdigit(static_cast<unsigned char>(lower[i + 1])) != 0;
      if (lower[i] == '_' && !between) return std::nullopt;
      if (lower[i] != '_') digits += lower[i];
    }
    if (digits.empty() || (std::isdigit(static_cast<unsigned char>(digits[0])) == 0 && digits[0] != '.')) {
      return std::nullopt;
    }
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (parsed.ptr != digits.data() + digits.size()) return std::nullopt;
    // from_chars leaves the value alone where it is beyond the range.
    if (parsed.ec == std::errc::result_out_of_range) out = std::strtod(digits.c_str(), nullptr);
  }
  return negative ? -out : out;
}

bool has_letters_beyond_ascii(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

Result<Value> filter_int(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [fallback, base] = HONE_TRY(bind<2>(call, arguments, {"default", "base"}));
  const Value otherwise = fallback == nullptr ? Value::integer(0) : *fallback;
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  if (const auto integer = input.any_integral()) return Value::integer(*integer);
  std::optional<double> real;
  if (const double* value = input.as_real()) {
    if (std::isinf(*value)) return call.error("cannot convert float infinity to integer");
    real = *value;
  }
  if (const std::string* text = input.as_string()) {
    const auto radix = base == nullptr ? std::optional<std::int64_t>(10) : base->integral();
    if (!radix || *radix < 0 || *radix == 1 || *radix > 36) return call.unsupported("with this base");
    if (has_letters_beyond_ascii(*text)) return call.unsupported("of digits beyond ASCII");
    HONE_TRY(
        call.evaluator.charge(call.offset, text->size() * (std::min(text->size(), kMostDigits) / 8 + 1)));
    if (const auto integer = parse_integer(*text, *radix)) return Value::integer(*integer);
    real = parse_float(*text);
  }
  if (!real || !std::isfinite(*real)) return otherwise;
  return Value::integer(BigInteger::from_double(*real));
}

Result<Value> filter_float(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [fallback] = HONE_TRY(bind<1>(call, arguments, {"default"}));
  const Value otherwise = fallback == nullptr ? Value::real(0.0) : *fallback;
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  if (const auto number = input.number()) {
    if (std::isinf(*number) && input.as_big() != nullptr)
      return call.error("int too large to convert to float");
    return Value::real(*number);
  }
  const std::string* text = input.as_string();
  if (text == nullptr) return otherwise;
  if (has_letters_beyond_ascii(*text)) return call.unsupported("of digits beyond ASCII");
  const auto real = parse_float(*text);
  return real ? Value::real(*real) : otherwise;
}

Result<Value> filter_abs(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  if (const double* real = input.as_real()) return Value::real(std::abs(*real));
  const auto integer = input.any_integral();
  if (!integer) return call.error(fmt::format("bad operand type for abs(): '{}'", input.type_name()));
  return Value::integer(integer->is_negative() ? integer->negated() : *integer);
}

// Python's round(x, precision): the decimal text of the exact value, rounded to even where it is a tie.
Result<Value> round_common(const Call& call, const Value& input, std::int64_t precision) {
  if (const auto integer = input.any_integral()) {
    if (precision < 0) return call.unsupported("of an integer to tens");
    return Value::integer(*integer);
  }
  const double value = *input.number();
  if (precision < 0 || precision > 400) return call.unsupported("with this precision");
  if (!std::isfinite(value)) return input;
  const std::string digits = fmt::format("{:.{}f}", value, static_cast<int>(precision));
  double out = 0.0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return Value::real(out);
}

Result<Value> filter_round(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [precision, method] = HONE_TRY(bind<2>(call, arguments, {"precision", "method"}));
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  const auto places = precision == nullptr ? std::optional<std::int64_t>(0) : precision->integral();
  if (!places) return call.unsupported("without an integer precision");
  const std::string name =
      method == nullptr ? "common" : HONE_TRY(call.evaluator.text_of(call.offset, *method));
  if (name != "common" && name != "ceil" && name != "floor") {
    return call.error("method must be common, ceil or floor");
  }
  if (!input.is_number()) {
    return call.error(fmt::format("type {} doesn't define __round__ method", input.type_name()));
  }
  if (name == "common") return round_common(call, input, *places);
  // math.ceil(value * 10**precision) / 10**precision
  const Value scale =
      HONE_TRY(call.evaluator.binary(call.offset, "**", Value::integer(10), Value::integer(*places)));
  const Value scaled = HONE_TRY(call.evaluator.binary(call.offset, "*", input, scale));
  Value whole = scaled;
  if (const double* real = scaled.as_real()) {
    if (!std::isfinite(*real)) return call.error("cannot convert float to integer");
    whole = Value::integer(BigInteger::from_double(name == "ceil" ? std::ceil(*real) : std::floor(*real)));
  }
  return call.evaluator.binary(call.offset, "/", whole, scale);
}

Result<Value> filter_format(const Call& call, const Value& input, const Arguments& arguments) {
  const std::string format = HONE_TRY(call.evaluator.text_of(call.offset, input));
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    return call.error("can't handle positional and keyword arguments at the same time");
  }
  const Value values =
      arguments.named.empty() ? make_list(Shape::Tuple, arguments.positional) : make_dict(arguments.named);
  return format_percent(call, format, values);
}

Result<Value> filter_indent(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [width, first, blank] = HONE_TRY(bind<3>(call, arguments, {"width", "first", "blank"}));
  HONE_TRY(call.evaluator.require_defined(call.offset, input));
  const std::string* text = input.as_string();
  if (text == nullptr && input.as_markup() != nullptr)
    return call.unsupported("of text that is marked as safe");
  if (text == nullptr) return call.error(fmt::format("indent takes a str, not {}", input.type_name()));
  std::string indention(4, ' ');
  if (width != nullptr && width->as_string() != nullptr) {
    indention = *width->as_string();
  } else if (width != nullptr) {
    if (!width->integral()) return call.error("the width of an indent is a number or a string");
    const std::int64_t count = std::max(*width->integral(), std::int64_t{0});
    HONE_TRY(call.evaluator.check_size(call.offset, static_cast<std::uint64_t>(count)));
    indention.assign(static_cast<std::size_t>(count), ' ');
  }
  HONE_TRY(call.evaluator.charge(call.offset, 8 * text->size()));
  std::string out = first != nullptr && first->truth() ? indention : "";
  const std::string with_end = *text + "\n";
  const std::vector<std::string_view> lines = split_lines(with_end);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out += '\n';
      if (!lines[i].empty() || (blank != nullptr && blank->truth())) out += indention;
    }
    out += lines[i];
    HONE_TRY(call.evaluator.check_size(call.offset, out.size()));
  }
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> filter_escape(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.as_markup() != nullptr) return input;
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return call.evaluator.bounded(call.offset, Value::markup(std::move(out)));
}

Result<Value> filter_safe(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  return Value::markup(HONE_TRY(call.evaluator.text_of(call.offset, input)));
}

Result<Value> filter_wordcount(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  std::int64_t words = 0;
  bool inside = false;
  for (std::string_view left = text; !left.empty();) {
    const Utf8Step step = utf8_step(left);
    const auto letter = has_property(step.code_point, UnicodeProperty::Letter);
    const auto number = has_property(step.code_point, UnicodeProperty::Number);
    if (!letter || !number) return call.unsupported("of unassigned characters");
    const bool word = *letter || *number || step.code_point == '_';
    if (word && !inside) ++words;
    inside = word;
    left.remove_prefix(step.length);
  }
  return Value::integer(words);
}

Result<Value> filter_truncate(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [length, kill, end, leeway] =
      HONE_TRY(bind<4>(call, arguments, {"length", "killwords", "end", "leeway"}));
  const std::string* text = input.as_string();
  if (text == nullptr) return call.unsupported(fmt::format("of a value of type {}", input.type_name()));
  const std::string tail = end == nullptr ? "..." : HONE_TRY(call.evaluator.text_of(call.offset, *end));
  const auto most = length == nullptr ? std::optional<std::int64_t>(255) : length->integral();
  const auto slack =
      leeway == nullptr || leeway->is_none() ? std::optional<std::int64_t>(5) : leeway->integral();
  const auto tail_length = static_cast<std::int64_t>(count_characters(tail));
  if (!most || !slack || *most < tail_length || *slack < 0)
    return call.error("the length of truncate is too small");
  const auto size = static_cast<std::int64_t>(count_characters(*text));
  if (size - *slack <= *most) return input;
  std::string_view cut = first_characters(*text, static_cast<std::size_t>(*most - tail_length));
  if (kill == nullptr || !kill->truth()) {
    const std::size_t blank = cut.rfind(' ');
    if (blank != std::string_view::npos) cut = cut.substr(0, blank);
  }
  return Value::string(std::string(cut) + tail);
}

Result<Value> filter_center(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [width] = HONE_TRY(bind<1>(call, arguments, {"width"}));
  const std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  const Value usual = Value::integer(80);
  return pad(call, text, width == nullptr ? &usual : width, nullptr, Align::Center);
}

// markupsafe's striptags: comments and tags go, runs of white space become one blank.
Result<Value> filter_striptags(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  std::string text = HONE_TRY(call.evaluator.text_of(call.offset, input));
  if (text.find('&') != std::string::npos) return call.unsupported("of text with entities");
  const auto remove = [&](std::string_view open, std::string_view close) {
    std::string out;
    std::size_t at = 0;
    while (true) {
      const std::size_t begin = text.find(open, at);
      const std::size_t end = begin == std::string::npos ? begin : text.find(close, begin);
      if (end == std::string::npos) break;
      out.append(text, at, begin - at);
      at = end + close.size();
    }
    text = out + text.substr(at);
  };
  remove("<!--", "-->");
  remove("<", ">");
  std::string out;
  std::string_view left = text;
  while (!left.empty()) {
    left.remove_prefix(leading_space(left));
    if (left.empty()) break;
    std::size_t end = 0;
    while (end < left.size() && leading_space(left.substr(end)) == 0)
      end += utf8_step(left.substr(end)).length;
    if (!out.empty()) out += ' ';
    out += left.substr(0, end);
    left.remove_prefix(end);
  }
  return Value::string(std::move(out));
}

Result<Value> filter_urlencode(const Call& call, const Value& input, const Arguments& arguments) {
  HONE_TRY(bind<0>(call, arguments, {}));
  if (input.as_dict() != nullptr || input.as_list() != nullptr || input.as_generator() != nullptr) {
    return call.unsupported(fmt::format("of a value of type {}", input.type_name()));
  }
  std::string out;
  for (const char c : HONE_TRY(call.evaluator.text_of(call.offset, input))) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 ||
                                       std::string_view("_.-~/").find(c) != std::string_view::npos);
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return call.evaluator.bounded(call.offset, Value::string(std::move(out)));
}

Result<Value> filter_attr(const Call& call, const Value& input, const Arguments& arguments) {
  const auto [name] = HONE_TRY(bind<1>(call, arguments, {"name"}));
  if (name == nullptr || name->as_string() == nullptr)
    return call.error("attr takes the name of an attribute");
  // No fall-back to the items of a mapping.
  if (input.as_dict() != nullptr && attribute_kind(input, *name->as_string()) == Attribute::None) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", *name->as_string()));
  }
  return call.evaluator.attribute(call.offset, input, *name->as_string());
}

constexpr std::array<FilterRow, 25> kTextFilters{{
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"d", filter_default},
    {"default", filter_default},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"float", filter_float},
    {"format", filter_format},
    {"indent", filter_indent},
    {"int", filter_int},
    {"lower", filter_case<LetterCase::Lower>},
    {"replace", filter_replace},
    {"round", filter_round},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", filter_case<LetterCase::Upper>},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
}};

constexpr std::array<std::string_view, 6> kUnsupported{"filesizeformat", "forceescape", "pprint",
                                                       "urlize",         "wordwrap",    "xmlattr"};

// What a filter does with text that is marked as safe is known for these only.
constexpr std::array<std::string_view, 9> kMarkupFilters{"e", "escape", "safe",   "string", "default",
                                                         "d", "tojson", "length", "count"};

}  // namespace

Filter find_text_filter(std::string_view name) {
  const auto row = std::find_if(kTextFilters.begin(), kTextFilters.end(),
                                [&](const FilterRow& r) { return r.name == name; });
  return row == kTextFilters.end() ? nullptr : row->filter;
}

bool is_known_filter(std::string_view name) {
  return find_text_filter(name) != nullptr || find_sequence_filter(name) != nullptr;
}

bool is_unsupported_filter(std::string_view name) {
  return std::find(kUnsupported.begin(), kUnsupported.end(), name) != kUnsupported.end();
}

Result<Value> apply_filter(Evaluator& evaluator, std::uint32_t offset, std::string_view name,
                           const Value& input, const Arguments& arguments) {
  const std::string what = fmt::format("filter '{}'", name);
  const Call call{evaluator, offset, what};
  if (is_unsupported_filter(name)) return evaluator.unsupported(offset, what);
  Filter filter = find_text_filter(name);
  if (filter == nullptr) filter = find_sequence_filter(name);
  if (filter == nullptr) return call.error(fmt::format("No filter named '{}'.", name));
  HONE_TRY(evaluator.charge(offset, 0));
  const bool known = input.as_markup() == nullptr ||
                     std::find(kMarkupFilters.begin(), kMarkupFilters.end(), name) != kMarkupFilters.end();
  if (!known) return call.unsupported("of text that is marked as safe");
  return filter(call, input, arguments);
}

}  // namespace hone::jinja
