#include "tokens/jinja_lexer.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

#include "tokens/jinja_integer.h"
#include "tokens/jinja_value.h"
#include "tokens/unicode_class.h"
#include "tokens/utf8.h"

namespace hone::jinja {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text()) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      if (tag == std::string_view::npos) {
        emit_data(at_, text_.substr(at_));
        break;
      }
      HONE_TRY(lex_tag(tag));
    }
    emit(Token::Kind::End, text_.size());
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < text_.size(); ++i) {
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#')) return i;
    }
    return std::string_view::npos;
  }

  Token& emit(Token::Kind kind, std::size_t offset) {
    tokens_.push_back(Token{kind, static_cast<std::uint32_t>(offset), {}});
    return tokens_.back();
  }

  void emit_data(std::size_t offset, std::string_view data) {
    if (!data.empty()) emit(Token::Kind::Data, offset).text = data;
  }

  // The text before a tag whose sign is `sign`. `block`: the tag is a block or a comment, so lstrip_blocks
  // takes the blanks between it and the start of its line.
  void emit_text_before(std::size_t tag, char sign, bool block) {
    std::string_view data = text_.substr(at_, tag - at_);
    if (sign == '-') {
      data = strip_right(data);
    } else if (sign != '+' && block) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line > 0 || line_starting_) && leading_space(data.substr(line)) == data.size() - line) {
        data = data.substr(0, line);
      }
    }
    emit_data(at_, data);
  }

  char sign_at(std::size_t at) const {
    const char c = at < text_.size() ? text_[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  bool looking_at(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  // Moves past what the end of a tag swallows. `sign` of the end; `trim`: one newline goes without a sign.
  void after_tag(char sign, bool trim) {
    const std::size_t begin = at_;
    if (sign == '-') {
      at_ += leading_space(text_.substr(at_));
    } else if (sign == '\0' && trim && looking_at("\n")) {
      ++at_;
    }
    line_starting_ = at_ > begin && text_[at_ - 1] == '\n';
  }

  Status lex_tag(std::size_t tag) {
    const char kind = text_[tag + 1];
    const char sign = sign_at(tag + 2);
    emit_text_before(tag, sign, kind != '{');
    at_ = tag + 2 + (sign != '\0' ? 1 : 0);
    if (kind == '#') return lex_comment(tag);
    if (kind == '%' && HONE_TRY(lex_raw(tag))) return {};
    emit(kind == '{' ? Token::Kind::VariableBegin : Token::Kind::BlockBegin, tag);
    return lex_inside(kind, tag);
  }

  Status lex_comment(std::size_t tag) {
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string_view::npos) return source_.error(tag, "a comment has no end");
    const char sign = end > at_ ? sign_at(end - 1) : '\0';
    at_ = end + 2;
    after_tag(sign, true);
    return {};
  }

  // `{% WORD %}` at at_: moves past it and gives the sign of its end; nullopt if something else stands there.
  std::optional<char> match_word_tag(std::string_view word, bool plus_allowed) {
    std::size_t at = at_ + leading_space(text_.substr(at_));
    if (!text_.substr(at).starts_with(word)) return std::nullopt;
    at += word.size();
    at += leading_space(text_.substr(at));
    const char sign = sign_at(at);
    if (sign == '+' && !plus_allowed) return std::nullopt;
    if (sign != '\0') ++at;
    if (!text_.substr(at).starts_with("%}")) return std::nullopt;
    at_ = at + 2;
    return sign;
  }

  // True if the block that begins here is `raw`; its text is one Data token.
  Result<bool> lex_raw(std::size_t tag) {
    const auto begin_sign = match_word_tag("raw", false);
    if (!begin_sign) return false;
    after_tag(*begin_sign, false);
    const std::size_t begin = at_;
    for (std::size_t end = text_.find("{%", begin); end != std::string_view::npos;
         end = text_.find("{%", end + 1)) {
      const char sign = sign_at(end + 2);
      at_ = end + 2 + (sign != '\0' ? 1 : 0);
      const auto end_sign = match_word_tag("endraw", true);
      if (!end_sign) continue;
      const std::size_t after = at_;
      at_ = begin;
      emit_text_before(end, sign, true);
      at_ = after;
      after_tag(*end_sign, true);
      return true;
    }
    return source_.error(tag, "a raw block has no end");
  }

  // True if the tag of `kind` ends here; the end token is out and at_ is past it.
  bool lex_tag_end(char kind) {
    const std::string_view close = kind == '{' ? "}}" : "%}";
    char sign = sign_at(at_);
    if (sign == '+' && kind == '{') sign = '\0';
    if (!text_.substr(at_ + (sign != '\0' ? 1 : 0)).starts_with(close)) return false;
    emit(kind == '{' ? Token::Kind::VariableEnd : Token::Kind::BlockEnd, at_);
    at_ += close.size() + (sign != '\0' ? 1 : 0);
    after_tag(sign, kind == '%');
    return true;
  }

  Status lex_inside(char kind, std::size_t tag) {
    std::string open;  // the brackets that are open; a tag cannot end inside them
    while (true) {
      if (at_ >= text_.size()) return source_.error(tag, "a tag has no end");
      if (open.empty() && lex_tag_end(kind)) return {};
      if (const std::size_t space = leading_space(text_.substr(at_)); space > 0) {
        at_ += space;
        continue;
      }
      const char c = text_[at_];
      if (is_digit(c)) {
        HONE_TRY(lex_number());
      } else if (name_character(at_, true) != 0) {
        lex_name();
      } else if (c == '\'' || c == '"') {
        HONE_TRY(lex_string());
      } else {
        HONE_TRY(lex_operator(open));
      }
    }
  }

  // Length of the character at `at` if it may stand in a name, beyond ASCII by Unicode's rules; else 0.
  std::size_t name_character(std::size_t at, bool first) const {
    if (at >= text_.size()) return 0;
    const char c = text_[at];
    if (static_cast<unsigned char>(c) < 0x80) return (first ? is_name_start(c) : is_name_part(c)) ? 1 : 0;
    const Utf8Step step = utf8_step(text_.substr(at));
    const auto property = first ? UnicodeProperty::NameStart : UnicodeProperty::NamePart;
    return has_property(step.code_point, property).value_or(false) ? step.length : 0;
  }

  void lex_name() {
    const std::size_t begin = at_;
    while (const std::size_t length = name_character(at_, at_ == begin)) at_ += length;
    emit(Token::Kind::Name, begin).text = text_.substr(begin, at_ - begin);
  }

  // Past a run of digits of `base`, with single underscores between them; `at` if there is none.
  std::size_t digits_from(std::size_t at, std::uint32_t base = 10, bool underscore_first = false) const {
    const auto is_base_digit = [&](std::size_t i) {
      const char c = i < text_.size() ? text_[i] : '\0';
      if (is_digit(c)) return static_cast<std::uint32_t>(c - '0') < base;
      return base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'));
    };
    const std::size_t begin = at;
    while (true) {
      const bool underscore = at < text_.size() && text_[at] == '_' && (at > begin || underscore_first);
      if (!is_base_digit(at + (underscore ? 1 : 0))) return at;
      at += underscore ? 2 : 1;
    }
  }

  // 0x1F, 0b1, 0o7: the base, and at the end of the digits; 10 for anything else.
  std::uint32_t prefixed_base(std::size_t at, std::size_t& end) const {
    if (text_[at] != '0' || at + 1 >= text_.size()) return 10;
    const char letter = static_cast<char>(text_[at + 1] | 0x20);
    const std::uint32_t base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    const std::size_t last = base == 10 ? at : digits_from(at + 2, base, true);
    if (base == 10 || last == at + 2) return 10;
    end = last;
    return base;
  }

  Status lex_number() {
    const std::size_t begin = at_;
    std::size_t end = digits_from(begin);
    const std::uint32_t base = prefixed_base(begin, end);
    bool is_float = false;
    // `x.0.1` has two integers: what follows a dot is never a float.
    const bool after_dot = begin > 0 && text_[begin - 1] == '.';
    if (!after_dot && base == 10) {
      const std::size_t whole = end;
      if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) end = digits_from(end + 1);
      if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        const std::size_t exponent = end + 1 + (sign_at(end + 1) != '\0' ? 1 : 0);
        if (digits_from(exponent) > exponent) end = digits_from(exponent);
      }
      is_float = end > whole;
    }
    if (name_character(end, false) != 0)
      return source_.unsupported(begin, "a number with letters or underscores");
    std::string digits(text_.substr(begin, end - begin));
    std::erase(digits, '_');
    at_ = end;
    Token& token = emit(is_float ? Token::Kind::Float : Token::Kind::Integer, begin);
    if (is_float) {
      // Infinite beyond the range of a double, as in Python; from_chars would leave the value alone.
      token.real = std::strtod(digits.c_str(), nullptr);
      return {};
    }
    if (base != 10) digits.erase(0, 2);
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      return source_.error(begin, "an integer begins with 0");
    }
    if (digits.size() > kMostDigits) return source_.error(begin, "an integer has more than 4300 digits");
    const auto integer = BigInteger::parse(digits, base);
    if (!integer) return source_.error(begin, "this is no number");
    if (const auto small = integer->small()) {
      token.integer = *small;
    } else {
      token.text = integer->text();
    }
    return {};
  }

  // `count` hexadecimal digits at at_ as a character.
  Status lex_hex(std::size_t escape, std::size_t count, std::string& out) {
    std::uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, count);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != count || parsed.ptr != digits.data() + count || parsed.ec != std::errc{}) {
      return source_.error(escape, "an escape in a string has too few hexadecimal digits");
    }
    if ((value >= 0xD800 && value <= 0xDFFF) || value > 0x10FFFF) {
      return source_.unsupported(escape, "an escape that is no character");
    }
    append_utf8(out, value);
    at_ += count;
    return {};
  }

  // at_ is past the backslash. Python's escapes; an unknown one stays as it is written.
  Status lex_escape(std::string& out) {
    constexpr std::array<std::pair<char, char>, 10> kSimple{{{'n', '\n'},
                                                             {'t', '\t'},
                                                             {'r', '\r'},
                                                             {'\\', '\\'},
                                                             {'\'', '\''},
                                                             {'"', '"'},
                                                             {'a', '\a'},
                                                             {'b', '\b'},
                                                             {'f', '\f'},
                                                             {'v', '\v'}}};
    const std::size_t escape = at_ - 1;
    const char c = text_[at_];
    for (const auto& [letter, meaning] : kSimple) {
      if (c != letter) continue;
      out += meaning;
      ++at_;
      return {};
    }
    if (is_digit(c) && c < '8') {
      std::uint32_t value = 0;
      for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] < '8'; ++i) {
        value = 8 * value + static_cast<std::uint32_t>(text_[at_++] - '0');
      }
      append_utf8(out, value);
      return {};
    }
    if (c == 'N') return source_.unsupported(escape, "an escape by character name");
    if (c == 'x' || c == 'u' || c == 'U') {
      ++at_;
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      return lex_hex(escape, count, out);
    }
    if (static_cast<unsigned char>(c) >= 0x80) return source_.unsupported(escape, "an escape beyond ASCII");
    if (c == '\n') {  // joins lines
      ++at_;
      return {};
    }
    out += '\\';
    return {};
  }

  Status lex_string() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      const char c = text_[at_++];
      if (c != '\\') {
        value += c;
      } else if (at_ < text_.size()) {
        HONE_TRY(lex_escape(value));
      }
    }
    if (at_ >= text_.size()) return source_.error(begin, "a string has no end");
    ++at_;
    emit(Token::Kind::String, begin).text = std::move(value);
    return {};
  }

  Status lex_operator(std::string& open) {
    constexpr std::array<std::string_view, 26> kOperators{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                          "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                          ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view op : kOperators) {
      if (!looking_at(op)) continue;
      const char c = op[0];
      if (c == '(' || c == '[' || c == '{') open += c;
      if (c == ')' || c == ']' || c == '}') {
        const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
        if (open.empty() || open.back() != wanted)
          return source_.error(at_, fmt::format("unexpected '{}'", c));
        open.pop_back();
      }
      emit(Token::Kind::Operator, at_).text = op;
      at_ += op.size();
      return {};
    }
    if (static_cast<unsigned char>(text_[at_]) >= 0x80) {
      return source_.error(at_, "unexpected character beyond ASCII");
    }
    return source_.error(at_, fmt::format("unexpected character '{}'", text_[at_]));
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(const Source& source) {
  return Lexer(source).run();
}

}  // namespace hone::jinja
