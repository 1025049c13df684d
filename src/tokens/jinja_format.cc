// Python's two ways of formatting: "%-5s" % x, by the rules of printf, and "{:>5}".format(x), by the format
// specification mini-language.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "tokens/jinja_strings.h"
#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

constexpr std::int64_t kMostPrecision = 500;

// What stands between '%' or ':' and the type.
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '\0';   // + or blank
  bool alternate = false;
  bool zero = false;
  char grouping = '\0';  // , or _
  std::int64_t width = 0;
  std::optional<std::int64_t> precision;
  char type = '\0';
};

// `body` in the width of `spec`; `sign` and prefix come before zeros. A filled field counts in characters.
Result<std::string> fit(const Call& call, const FormatSpec& spec, std::string_view sign,
                        const std::string& body, char align) {
  const auto length = static_cast<std::int64_t>(count_characters(sign) + count_characters(body));
  std::string out;
  if (length >= spec.width) return std::string(sign) + body;
  const auto missing = static_cast<std::uint64_t>(spec.width - length);
  HONE_TRY(call.evaluator.check_size(call.offset, missing * spec.fill.size()));
  HONE_TRY(call.evaluator.charge(call.offset, missing));
  const std::uint64_t left = align == '<' ? 0 : (align == '^' ? missing / 2 : missing);
  const auto add_fill = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) out += spec.fill;
  };
  if (align == '=') out += sign;
  add_fill(left);
  if (align != '=') out += sign;
  out += body;
  add_fill(missing - left);
  return out;
}

// Separators between groups of `size` digits, from the right, of the digits at the start of `text`.
std::string group_digits(const std::string& text, char separator, std::size_t size) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789abcdefABCDEF"), text.size());
  std::string out;
  for (std::size_t i = 0; i < digits; ++i) {
    if (i > 0 && (digits - i) % size == 0) out += separator;
    out += text[i];
  }
  return out + text.substr(digits);
}

// The magnitude of a float by type e, f, g or %.
Result<std::string> float_digits(const Call& call, const FormatSpec& spec, double value) {
  const std::int64_t precision = spec.precision.value_or(6);
  if (precision > kMostPrecision) return call.unsupported("with this precision");
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type;
  const double magnitude = std::abs(percent ? value * 100 : value);
  if (!std::isfinite(magnitude)) {
    const bool upper = type == 'F' || type == 'E' || type == 'G';
    return std::string(std::isnan(magnitude) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf")) +
           (percent ? "%" : "");
  }
  const std::array<char, 6> pattern{'%',
                                    spec.alternate ? '#' : '.',
                                    spec.alternate ? '.' : '*',
                                    spec.alternate ? '*' : type,
                                    spec.alternate ? type : '\0',
                                    '\0'};
  std::array<char, 1024> buffer{};
  // The longest text: 309 digits, the point, the precision.
  const int length =
      std::snprintf(buffer.data(), buffer.size(), pattern.data(), static_cast<int>(precision), magnitude);
  return std::string(buffer.data(), static_cast<std::size_t>(length)) + (percent ? "%" : "");
}

Result<std::string> integer_digits(const Call& call, const BigInteger& value, char type) {
  const std::uint32_t base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  HONE_TRY(call.evaluator.charge(call.offset, value.bits() * value.bits() / 1024));
  std::string digits = value.text(base);
  if (base == 10 && digits.size() > kMostDigits) {
    return call.error(
        fmt::format("Exceeds the limit ({} digits) for integer string conversion", kMostDigits));
  }
  if (value.is_negative()) digits.erase(0, 1);
  if (type == 'X') digits = change_case(digits, LetterCase::Upper);
  return digits;
}

std::string_view sign_text(bool negative, char sign) {
  return negative ? "-" : (sign == '+' ? "+" : (sign == ' ' ? " " : ""));
}

std::string_view base_prefix(const FormatSpec& spec) {
  if (!spec.alternate) return "";
  return spec.type == 'x'   ? "0x"
         : spec.type == 'X' ? "0X"
         : spec.type == 'o' ? "0o"
         : spec.type == 'b' ? "0b"
                            : "";
}

class PercentFormatter {
 public:
  PercentFormatter(const Call& call, std::string_view format, const Value& values)
      : call_(call), format_(format), values_(values) {
    const List* list = values.as_list();
    tuple_ = list != nullptr && list->is_tuple() ? list : nullptr;
    mapping_ = values.as_dict() != nullptr || (list != nullptr && list->is_sequence() && tuple_ == nullptr);
  }

  Result<Value> run() {
    while (at_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', at_), format_.size());
      out_ += format_.substr(at_, percent - at_);
      at_ = percent + 1;
      if (percent < format_.size()) HONE_TRY(convert());
      HONE_TRY(call_.evaluator.check_size(call_.offset, out_.size()));
    }
    const std::size_t given = tuple_ != nullptr ? tuple_->items.size() : 1;
    if (used_ < given && !mapping_)
      return call_.error("not all arguments converted during string formatting");
    return Value::string(std::move(out_));
  }

 private:
  char now() const { return at_ < format_.size() ? format_[at_] : '\0'; }

  Result<Value> next_value() {
    if (tuple_ == nullptr && used_ == 0) {
      ++used_;
      return values_;
    }
    if (tuple_ == nullptr || used_ >= tuple_->items.size()) {
      return call_.error("not enough arguments for format string");
    }
    return tuple_->items[used_++];
  }

  Result<std::int64_t> number() {
    if (now() == '*') {
      ++at_;
      const Value value = HONE_TRY(next_value());
      if (!value.integral()) return call_.error("* wants int");
      if (*value.integral() < -(1 << 20) || *value.integral() > (1 << 30))
        return call_.error("a width is too large");
      return *value.integral();
    }
    std::int64_t out = 0;
    for (; now() >= '0' && now() <= '9'; ++at_) {
      out = 10 * out + (now() - '0');
      if (out > (1 << 30)) return call_.error("a width is too large");
    }
    return out;
  }

  Result<Value> keyed_value() {
    std::size_t end = at_ + 1;
    for (int open = 1; end < format_.size(); ++end) {
      open += format_[end] == '(' ? 1 : (format_[end] == ')' ? -1 : 0);
      if (open == 0) break;
    }
    if (end >= format_.size()) return call_.error("incomplete format key");
    const std::string_view key = format_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    const Dict* dict = values_.as_dict();
    if (dict == nullptr) return call_.error("format requires a mapping");
    HONE_TRY(call_.evaluator.charge(call_.offset, dict->items.size()));
    const Value* found = dict->find(key);
    if (found == nullptr) return call_.error(fmt::format("the mapping has no key '{}'", key));
    return *found;
  }

  Status convert() {
    FormatSpec spec;
    std::optional<Value> value;
    if (now() == '(') value = HONE_TRY(keyed_value());
    for (bool flag = true; flag;) {
      switch (now()) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          if (spec.sign == '\0') spec.sign = ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          spec.zero = true;
          break;
        default:
          flag = false;
      }
      if (flag) ++at_;
    }
    spec.width = HONE_TRY(number());
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = -spec.width;
    }
    if (now() == '.') {
      ++at_;
      spec.precision = std::max(std::int64_t{0}, HONE_TRY(number()));
    }
    while (now() == 'l' || now() == 'h' || now() == 'L') ++at_;
    if (at_ >= format_.size()) return call_.error("incomplete format");
    spec.type = format_[at_++];
    if (spec.type == '%') {
      out_ += '%';
      return {};
    }
    if (!value) value = HONE_TRY(next_value());
    out_ += HONE_TRY(format_value(spec, *value));
    return {};
  }

  Result<std::string> format_value(FormatSpec& spec, const Value& value) {
    const char align = spec.align == '\0' ? '>' : spec.align;
    switch (spec.type) {
      case 's':
      case 'r': {
        std::string text;
        HONE_TRY(call_.evaluator.charge_weight(call_.offset, value));
        const bool known = spec.type == 's' ? append_text(text, value) : append_repr(text, value);
        if (!known) return call_.unsupported(fmt::format("of a value of type {}", value.type_name()));
        if (spec.precision) text = first_characters(text, static_cast<std::size_t>(*spec.precision));
        return fit(call_, spec, "", text, align);
      }
      case 'c': {
        const auto code = value.integral();
        std::string text;
        if (code && *code >= 0 && *code < 0x110000 && (*code < 0xD800 || *code > 0xDFFF)) {
          append_utf8(text, static_cast<char32_t>(*code));
        } else if (value.as_string() != nullptr && count_characters(*value.as_string()) == 1) {
          text = *value.as_string();
        } else {
          return call_.error("%c requires int or char");
        }
        return fit(call_, spec, "", text, align);
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return format_integer(spec, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        const auto number = value.number();
        if (!number) return call_.error(fmt::format("must be real number, not {}", value.type_name()));
        std::string digits = HONE_TRY(float_digits(call_, spec, *number));
        return zero_fit(spec, sign_text(std::signbit(*number) && !std::isnan(*number), spec.sign), digits);
      }
      default:
        return call_.error(fmt::format("unsupported format character '{}'", spec.type));
    }
  }

  Result<std::string> format_integer(FormatSpec& spec, const Value& value) {
    auto integer = value.any_integral();
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (!integer && decimal && value.as_real() != nullptr) {
      if (!std::isfinite(*value.as_real())) return call_.error("cannot convert float to integer");
      integer = BigInteger::from_double(*value.as_real());
    }
    if (!integer) {
      return call_.error(
          fmt::format("%{} format: a real number is required, not {}", spec.type, value.type_name()));
    }
    std::string digits = HONE_TRY(integer_digits(call_, *integer, spec.type));
    if (spec.precision) {
      const auto least = static_cast<std::uint64_t>(*spec.precision);
      HONE_TRY(call_.evaluator.check_size(call_.offset, least));
      if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
    }
    const std::string sign =
        std::string(sign_text(integer->is_negative(), spec.sign)).append(base_prefix(spec));
    return zero_fit(spec, sign, digits);
  }

  Result<std::string> zero_fit(FormatSpec& spec, std::string_view sign, const std::string& digits) const {
    const bool zero = spec.zero && spec.align != '<';
    if (zero) spec.fill = "0";
    return fit(call_, spec, sign, digits, zero ? '=' : (spec.align == '\0' ? '>' : spec.align));
  }

  const Call& call_;
  std::string_view format_;
  const Value& values_;
  const List* tuple_ = nullptr;
  bool mapping_ = false;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  std::string out_;
};

class BraceFormatter {
 public:
  BraceFormatter(const Call& call, std::string_view format, const Arguments& arguments)
      : call_(call), format_(format), arguments_(arguments) {}

  Result<Value> run() {
    while (at_ < format_.size()) {
      const char c = format_[at_];
      if ((c == '{' || c == '}') && at_ + 1 < format_.size() && format_[at_ + 1] == c) {
        out_ += c;
        at_ += 2;
      } else if (c == '}') {
        return call_.error("Single '}' encountered in format string");
      } else if (c == '{') {
        HONE_TRY(replace_field());
      } else {
        out_ += c;
        ++at_;
      }
      HONE_TRY(call_.evaluator.check_size(call_.offset, out_.size()));
    }
    return Value::string(std::move(out_));
  }

 private:
  Status replace_field() {
    const std::size_t end = format_.find('}', at_);
    if (end == std::string_view::npos) return call_.error("Single '{' encountered in format string");
    std::string_view field = format_.substr(at_ + 1, end - at_ - 1);
    if (field.find('{') != std::string_view::npos) return call_.unsupported("with a field inside of a field");
    at_ = end + 1;
    std::string_view spec;
    if (const std::size_t colon = field.find(':'); colon != std::string_view::npos) {
      spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    char conversion = '\0';
    if (const std::size_t mark = field.find('!'); mark != std::string_view::npos) {
      if (mark + 2 != field.size()) return call_.error("expected ':' after conversion specifier");
      conversion = field[mark + 1];
      field = field.substr(0, mark);
    }
    Value value = HONE_TRY(field_value(field));
    if (conversion != '\0') value = HONE_TRY(convert(value, conversion));
    out_ += HONE_TRY(format_value(value, spec));
    return {};
  }

  Result<Value> convert(const Value& value, char conversion) const {
    std::string text;
    HONE_TRY(call_.evaluator.charge_weight(call_.offset, value));
    if (conversion != 'r' && conversion != 's') return call_.unsupported("with this conversion");
    const bool known = conversion == 'r' ? append_repr(text, value) : append_text(text, value);
    if (!known) return call_.unsupported(fmt::format("of a value of type {}", value.type_name()));
    return Value::string(std::move(text));
  }

  // "", "0", "name", each with .attribute and [item] after it.
  Result<Value> field_value(std::string_view field) {
    const std::size_t end = std::min(field.find_first_of(".["), field.size());
    const std::string_view name = field.substr(0, end);
    if (end < field.size()) return call_.unsupported("with an attribute or item in a field");
    const bool number = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
    if (name.empty() || number) {
      if (number && name.size() > 6) return call_.error("Too many decimal digits in format string");
      if ((number && next_ > 0) || (!number && numbered_)) {
        return call_.error("cannot switch between manual field specification and automatic field numbering");
      }
      numbered_ = numbered_ || number;
      std::size_t index = next_;
      if (number) {
        index = 0;
        for (const char c : name) index = 10 * index + static_cast<std::size_t>(c - '0');
      } else {
        ++next_;
      }
      if (index >= arguments_.positional.size()) {
        return call_.error("Replacement index out of range for positional args tuple");
      }
      return arguments_.positional[index];
    }
    for (const auto& [key, value] : arguments_.named) {
      if (key == name) return value;
    }
    return call_.error(fmt::format("the format has no argument '{}'", name));
  }

  Result<FormatSpec> parse(std::string_view text) const {
    FormatSpec spec;
    const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
    const std::size_t first = text.empty() ? 0 : utf8_step(text).length;
    if (text.size() > first && first > 0 && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      text.remove_prefix(first + 1);
    } else if (!text.empty() && is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
    const auto take = [&](std::string_view among) {
      if (text.empty() || among.find(text[0]) == std::string_view::npos) return '\0';
      const char c = text[0];
      text.remove_prefix(1);
      return c;
    };
    const auto take_number = [&]() -> std::optional<std::int64_t> {
      std::optional<std::int64_t> out;
      while (!text.empty() && text[0] >= '0' && text[0] <= '9' && out.value_or(0) < (1 << 26)) {
        out = 10 * out.value_or(0) + (text[0] - '0');
        text.remove_prefix(1);
      }
      return out;
    };
    spec.sign = take("+- ");
    spec.alternate = take("#") != '\0';
    spec.zero = take("0") != '\0';
    spec.width = take_number().value_or(0);
    spec.grouping = take(",_");
    if (take(".") != '\0') {
      spec.precision = take_number();
      if (!spec.precision) return call_.error("Format specifier missing precision");
    }
    if (!text.empty()) {
      spec.type = text[0];
      text.remove_prefix(1);
    }
    if (!text.empty()) return call_.error("Invalid format specifier");
    if (spec.zero && spec.align == '\0') spec.align = '=';
    if (spec.zero && spec.fill == " ") spec.fill = "0";
    return spec;
  }

  Result<std::string> format_value(const Value& value, std::string_view text) const {
    if (text.empty()) return call_.evaluator.text_of(call_.offset, value);
    FormatSpec spec = HONE_TRY(parse(text));
    if (const std::string* string = value.as_string()) {
      if (spec.zero && spec.align == '=') spec.align = '<';
      const bool wrong = (spec.type != '\0' && spec.type != 's') || spec.sign != '\0' || spec.alternate ||
                         spec.grouping != '\0' || spec.align == '=';
      if (wrong) return call_.error("this format specification is not allowed for a string");
      std::string_view part = *string;
      if (spec.precision) part = first_characters(part, static_cast<std::size_t>(*spec.precision));
      return fit(call_, spec, "", std::string(part), spec.align == '\0' ? '<' : spec.align);
    }
    if (!value.is_number()) {
      return call_.error(fmt::format("unsupported format string passed to {}.__format__", value.type_name()));
    }
    return format_number(value, spec);
  }

  Result<std::string> format_number(const Value& value, FormatSpec& spec) const {
    const char align = spec.align == '\0' ? '>' : spec.align;
    const bool whole_type = std::string_view("bcdoxX").find(spec.type) != std::string_view::npos;
    if (value.as_real() == nullptr && (whole_type || spec.type == '\0')) {
      if (spec.type == 'c') return call_.unsupported("of type 'c'");
      if (spec.precision) return call_.error("Precision not allowed in integer format specifier");
      const BigInteger integer = *value.any_integral();
      std::string digits = HONE_TRY(integer_digits(call_, integer, spec.type));
      const bool decimal = spec.type == 'd' || spec.type == '\0';
      if (spec.grouping == ',' && !decimal) return call_.error("Cannot specify ',' with this type");
      if (spec.grouping != '\0') {
        if (spec.zero && spec.width > 0) return call_.unsupported("with groups and zeros");
        digits = group_digits(digits, spec.grouping, decimal ? 3 : 4);
      }
      const std::string sign =
          std::string(sign_text(integer.is_negative(), spec.sign)).append(base_prefix(spec));
      return fit(call_, spec, sign, digits, align);
    }
    const double number = *value.number();
    if (std::isinf(number) && value.as_big() != nullptr)
      return call_.error("int too large to convert to float");
    std::string digits;
    if (spec.type == '\0' && !spec.precision && !spec.alternate) {
      digits = float_text(std::abs(number));
    } else if (std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type != '\0') {
      digits = HONE_TRY(float_digits(call_, spec, number));
    } else if (spec.type == '\0' || spec.type == 'n') {
      return call_.unsupported("of a float with this specification");
    } else {
      return call_.error(fmt::format("Unknown format code '{}' for object of type 'float'", spec.type));
    }
    if (spec.grouping != '\0') {
      if (spec.zero && spec.width > 0) return call_.unsupported("with groups and zeros");
      digits = group_digits(digits, spec.grouping, 3);
    }
    return fit(call_, spec, sign_text(std::signbit(number) && !std::isnan(number), spec.sign), digits, align);
  }

  const Call& call_;
  std::string_view format_;
  const Arguments& arguments_;
  std::size_t at_ = 0;
  std::size_t next_ = 0;
  bool numbered_ = false;
  std::string out_;
};

}  // namespace

Result<Value> format_percent(const Call& call, std::string_view format, const Value& values) {
  return PercentFormatter(call, format, values).run();
}

Result<Value> format_braces(const Call& call, std::string_view format, const Arguments& arguments) {
  return BraceFormatter(call, format, arguments).run();
}

}  // namespace hone::jinja
