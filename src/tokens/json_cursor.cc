#include "tokens/json_cursor.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "file/json_text.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::size_t kMaxJsonDepth = 64;

bool is_number_character(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// RFC 8259, section 6.
bool is_json_number(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
    return at - begin;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const std::size_t whole = at;
  const std::size_t count = digits();
  if (count == 0 || (count > 1 && text[whole] == '0')) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

JsonCursor::JsonCursor(std::string_view text, std::string_view path) : text_(text), path_(path) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
}

Error JsonCursor::error_at(std::size_t offset, std::string message, std::string expected) const {
  const std::string_view rest = text_.substr(std::min(offset, text_.size()));
  return bad_json_at(text_, path_, offset, std::move(message), std::move(expected),
                     rest.empty() ? "end of file" : fmt::format("'{}'", to_valid_utf8(rest.substr(0, 20))));
}

Error JsonCursor::error(std::string message, std::string expected) const {
  return error_at(at_, std::move(message), std::move(expected));
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

JsonCursor::Kind JsonCursor::peek() {
  skip_space();
  if (at_ >= text_.size()) return Kind::None;
  const char c = text_[at_];
  if (c == '{') return Kind::Object;
  if (c == '[') return Kind::Array;
  if (c == '"') return Kind::String;
  if (c == '-' || (c >= '0' && c <= '9')) return Kind::Number;
  if (c == 't' || c == 'f') return Kind::Bool;
  if (c == 'n') return Kind::Null;
  return Kind::None;
}

Status JsonCursor::open(char bracket, std::string_view name) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != bracket)
    return error("another kind of value stands here", std::string(name));
  ++at_;
  return {};
}

Result<bool> JsonCursor::more(char bracket, bool first) {
  skip_space();
  if (at_ < text_.size() && text_[at_] == bracket) {
    ++at_;
    return false;
  }
  if (first) return true;
  if (at_ >= text_.size() || text_[at_] != ',') {
    return error("the JSON text is broken", fmt::format("a comma or '{}'", bracket));
  }
  ++at_;
  skip_space();
  return true;
}

Status JsonCursor::colon() {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != ':') return error("the JSON text is broken", "a colon");
  ++at_;
  return {};
}

std::optional<std::uint32_t> JsonCursor::hex4(std::size_t at) const {
  if (at + 4 > text_.size()) return std::nullopt;
  std::uint32_t value = 0;
  const char* const end = text_.data() + at + 4;
  const auto [stop, failed] = std::from_chars(text_.data() + at, end, value, 16);
  if (failed != std::errc() || stop != end) return std::nullopt;
  return value;
}

// buffer_ becomes the string whose first character stands at `begin`; passes its closing quote.
Status JsonCursor::unescape(std::size_t begin) {
  constexpr std::string_view kShort = "\"\\/bfnrt";
  constexpr std::string_view kMeans = "\"\\/\b\f\n\r\t";
  buffer_.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size() && text_[at_] != '"') {
    if (static_cast<unsigned char>(text_[at_]) < 0x20)
      return error("a string has no control characters", "an escape");
    if (text_[at_] != '\\') {
      buffer_ += text_[at_++];
      continue;
    }
    const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (const std::size_t which = kShort.find(c); which != std::string_view::npos && c != '\0') {
      buffer_ += kMeans[which];
      at_ += 2;
      continue;
    }
    const auto first = c == 'u' ? hex4(at_ + 2) : std::nullopt;
    if (!first) return error("an escape must be known", "\\n, \\u0041 and the like");
    char32_t point = *first;
    at_ += 6;
    if (point >= 0xD800 && point < 0xE000) {
      const bool low = point < 0xDC00 && text_.substr(at_, 2) == "\\u";
      const auto second = low ? hex4(at_ + 2) : std::nullopt;
      if (!second || *second < 0xDC00 || *second > 0xDFFF) {
        return error_at(at_ - 6, "a surrogate must have its pair", "\\uD83D\\uDE00 and the like");
      }
      point = 0x10000 + ((point - 0xD800) << 10) + (*second - 0xDC00);
      at_ += 6;
    }
    append_utf8(buffer_, point);
  }
  if (at_ >= text_.size()) return error("a string must end", "a quote");
  ++at_;
  return {};
}

Result<std::string_view> JsonCursor::string() {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != '"') return error("another kind of value stands here", "a string");
  const std::size_t begin = ++at_;
  bool ascii = true;
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"' || c == '\\' || c < 0x20) break;
    ascii = ascii && c < 0x80;
    ++at_;
  }
  std::string_view out;
  if (at_ < text_.size() && text_[at_] == '"') {
    out = text_.substr(begin, at_ - begin);
    ++at_;
    if (ascii) return out;
  } else {
    HONE_TRY(unescape(begin));
    out = buffer_;
  }
  const std::size_t valid = utf8_valid_prefix(out);
  if (valid != out.size()) return error_at(begin, "a string must be UTF-8", "well-formed characters");
  return out;
}

Result<bool> JsonCursor::boolean() {
  skip_space();
  for (const bool value : {true, false}) {
    const std::string_view word = value ? "true" : "false";
    if (text_.substr(at_, word.size()) != word) continue;
    at_ += word.size();
    return value;
  }
  return error("another kind of value stands here", "true or false");
}

bool JsonCursor::take_null() {
  skip_space();
  if (text_.substr(at_, 4) != "null") return false;
  at_ += 4;
  return true;
}

Result<double> JsonCursor::number() {
  skip_space();
  std::size_t end = at_;
  while (end < text_.size() && is_number_character(text_[end])) ++end;
  const std::string_view digits = text_.substr(at_, end - at_);
  double value = 0;
  const auto [stop, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (!is_json_number(digits) || failed != std::errc() || stop != digits.data() + digits.size()) {
    return error("another kind of value stands here", "a number");
  }
  at_ = end;
  return value;
}

Result<std::int64_t> JsonCursor::integer() {
  skip_space();
  std::int64_t value = 0;
  const char* const end = text_.data() + text_.size();
  const auto [stop, failed] = std::from_chars(text_.data() + at_, end, value);
  const bool more_digits = failed == std::errc() && stop != end && is_number_character(*stop);
  if (failed != std::errc() || more_digits)
    return error("another kind of value stands here", "a whole number");
  at_ = static_cast<std::size_t>(stop - text_.data());
  return value;
}

Status JsonCursor::scalar() {
  switch (peek()) {
    case Kind::String:
      HONE_TRY(string());
      return {};
    case Kind::Number:
      HONE_TRY(number());
      return {};
    case Kind::Bool:
      HONE_TRY(boolean());
      return {};
    case Kind::Null:
      if (take_null()) return {};
      break;
    default:
      break;
  }
  return error("the JSON text is broken", "a value");
}

Result<std::string_view> JsonCursor::skip() {
  skip_space();
  const std::size_t begin = at_;
  std::string closing;  // the brackets that are open
  do {
    const Kind kind = peek();
    bool entered = false;
    if (kind == Kind::Object || kind == Kind::Array) {
      if (closing.size() == kMaxJsonDepth)
        return error("the JSON text is nested too deeply", fmt::format("at most {} levels", kMaxJsonDepth));
      closing += kind == Kind::Object ? '}' : ']';
      ++at_;
      entered = true;
    } else {
      HONE_TRY(scalar());
    }
    // Out of what has ended, up to the next value.
    for (; !closing.empty(); entered = false) {
      const bool another = HONE_TRY(more(closing.back(), entered));
      if (another) {
        if (closing.back() == '}') {
          HONE_TRY(string());
          HONE_TRY(colon());
        }
        break;
      }
      closing.pop_back();
    }
  } while (!closing.empty());
  return text_.substr(begin, at_ - begin);
}

Status JsonCursor::end() {
  skip_space();
  if (at_ == text_.size()) return {};
  return error("one JSON value is the whole text", "end of file");
}

}  // namespace hone
