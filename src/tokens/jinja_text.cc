// How values look when printed: str, repr and json.dumps of Python.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "tokens/jinja_value.h"
#include "tokens/unicode_class.h"
#include "tokens/utf8.h"

namespace hone::jinja {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
  // "-d.ddde+XX" -> sign, digits, exponent. Python writes exponents from -4 to 15 out.
  std::string_view text(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  std::string out;
  if (text.starts_with('-')) {
    out = "-";
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  const char* exponent_text = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_text, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += '.' + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + '.' + digits.substr(whole);
}

namespace {

bool append_string_repr(std::string& out, std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    if (step.kind != Utf8Step::Kind::Valid) return false;
    const char32_t c = step.code_point;
    const Printable shown = printable(c);
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\\' || c == static_cast<unsigned char>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (shown == Printable::Unknown) {
      return false;
    } else if (shown == Printable::Yes) {
      out += text.substr(0, step.length);
    } else if (c < 0x100) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(c));
    } else if (c < 0x10000) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      fmt::format_to(std::back_inserter(out), "\\U{:08x}", static_cast<std::uint32_t>(c));
    }
    text.remove_prefix(step.length);
  }
  out += quote;
  return true;
}

bool append_list_repr(std::string& out, const List& list) {
  if (list.shape == Shape::Range) {
    const auto [start, stop, step] = list.range;
    out += fmt::format("range({}, {}", start, stop);
    out += step == 1 ? ")" : fmt::format(", {})", step);
    return true;
  }
  const bool view = !list.is_sequence();
  const bool tuple = list.is_tuple();
  if (view) out += fmt::format("{}(", list.type_name());
  out += tuple ? '(' : '[';
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (!append_repr(out, list.items[i])) return false;
  }
  if (tuple && list.items.size() == 1) out += ',';
  out += tuple ? ')' : ']';
  if (view) out += ')';
  return true;
}

bool append_integer(std::string& out, const Value& value) {
  if (const auto small = value.integral()) {
    out += fmt::format("{}", *small);
    return true;
  }
  const BigInteger& big = *value.as_big();
  // 3 bits a digit are too few, so nothing short is refused, and nothing long is worked out.
  if (big.bits() > 4 * kMostDigits) return false;
  const std::string digits = big.text();
  if (digits.size() - (big.is_negative() ? 1 : 0) > kMostDigits) return false;
  out += digits;
  return true;
}

bool append_dict_repr(std::string& out, const Dict& dict) {
  out += '{';
  for (std::size_t i = 0; i < dict.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (!append_string_repr(out, dict.items[i].first)) return false;
    out += ": ";
    if (!append_repr(out, dict.items[i].second)) return false;
  }
  out += '}';
  return true;
}

}  // namespace

bool append_text(std::string& out, const Value& value) {
  if (value.is_undefined()) return true;
  const auto* string = value.as_string() != nullptr ? value.as_string() : value.as_markup();
  if (string != nullptr) {
    out += *string;
    return true;
  }
  return append_repr(out, value);
}

bool append_repr(std::string& out, const Value& value) {
  if (value.is_undefined()) {
    out += "Undefined";
  } else if (value.is_none()) {
    out += "None";
  } else if (const auto* boolean = value.as_boolean()) {
    out += *boolean ? "True" : "False";
  } else if (value.is_integer()) {
    return append_integer(out, value);
  } else if (const auto* real = value.as_real()) {
    out += float_text(*real);
  } else if (const auto* string = value.as_string()) {
    return append_string_repr(out, *string);
  } else if (const List* list = value.as_list()) {
    return append_list_repr(out, *list);
  } else if (const Dict* dict = value.as_dict()) {
    return append_dict_repr(out, *dict);
  } else if (const auto* markup = value.as_markup()) {
    out += "Markup(";
    if (!append_string_repr(out, *markup)) return false;
    out += ')';
  } else {
    return false;
  }
  return true;
}

namespace {

// \uXXXX, beyond 16 bits as a surrogate pair.
void append_json_escape(std::string& out, char32_t c) {
  const auto unit = [&](std::uint32_t value) { fmt::format_to(std::back_inserter(out), "\\u{:04x}", value); };
  if (c < 0x10000) return unit(c);
  unit(0xD800 + ((c - 0x10000) >> 10));
  unit(0xDC00 + ((c - 0x10000) & 0x3FFU));
}

void append_json_string(std::string& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (ensure_ascii && static_cast<unsigned char>(c) >= 0x80) {
      const Utf8Step step = utf8_step(text.substr(i));
      append_json_escape(out, step.code_point);
      i += step.length - 1;
      continue;
    }
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

class JsonWriter {
 public:
  JsonWriter(std::string& out, const JsonStyle& style) : out_(out), style_(style) {}

  std::optional<std::string_view> write(const Value& value) {
    if (out_.size() > style_.limit) return "value of this size";
    if (value.is_none()) {
      out_ += "null";
    } else if (const auto* boolean = value.as_boolean()) {
      out_ += *boolean ? "true" : "false";
    } else if (const auto* real = value.as_real()) {
      out_ += std::isnan(*real)   ? "NaN"
              : std::isinf(*real) ? (*real < 0 ? "-Infinity" : "Infinity")
                                  : float_text(*real);
    } else if (value.is_integer()) {
      if (!append_integer(out_, value)) return "int of so many digits";
    } else if (const auto* string = value.as_string()) {
      append_json_string(out_, *string, style_.ensure_ascii);
    } else if (const auto* markup = value.as_markup()) {
      append_json_string(out_, *markup, style_.ensure_ascii);
    } else if (const List* list = value.as_list();
               list != nullptr && (list->shape == Shape::List || list->is_tuple())) {
      return write_list(*list);
    } else if (const Dict* dict = value.as_dict()) {
      return write_dict(*dict);
    } else {
      return value.type_name();
    }
    return std::nullopt;
  }

 private:
  void line() {
    if (!style_.indent) return;
    out_ += '\n';
    for (std::int32_t i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  void separate(bool first) {
    if (!first) out_ += style_.item_separator;
    line();
  }

  std::optional<std::string_view> write_list(const List& list) {
    out_ += '[';
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      separate(i == 0);
      if (auto failed = write(list.items[i])) return failed;
    }
    --level_;
    if (!list.items.empty()) line();
    out_ += ']';
    return std::nullopt;
  }

  std::optional<std::string_view> write_dict(const Dict& dict) {
    std::vector<const std::pair<std::string, Value>*> sorted;
    sorted.reserve(dict.items.size());
    for (const auto& item : dict.items) sorted.push_back(&item);
    // The order of UTF-8 bytes is that of code points, by which Python sorts.
    if (style_.sort_keys)
      std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
    out_ += '{';
    ++level_;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      separate(i == 0);
      append_json_string(out_, sorted[i]->first, style_.ensure_ascii);
      out_ += style_.key_separator;
      if (auto failed = write(sorted[i]->second)) return failed;
    }
    --level_;
    if (!sorted.empty()) line();
    out_ += '}';
    return std::nullopt;
  }

  std::string& out_;
  const JsonStyle& style_;
  std::int32_t level_ = 0;
};

}  // namespace

std::optional<std::string_view> append_json(std::string& out, const Value& value, const JsonStyle& style) {
  return JsonWriter(out, style).write(value);
}

}  // namespace hone::jinja
