#include "tokens/expression.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <pcre2.h>
#include <string>
#include <utf8proc.h>

#include "tokens/tokenizer_error.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::size_t kMaxExpression = 1U << 16U;

// PCRE2's own \s also takes U+180E, which Unicode 6.3 moved out of White_Space; its \w takes no marks and
// every kind of number.
constexpr std::string_view kSpaces =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWordCharacters =
    R"(\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

std::string pcre2_reason(int code) {
  std::array<PCRE2_UCHAR8, 256> buffer{};
  pcre2_get_error_message_8(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// Oniguruma's syntax to PCRE2's.
class SyntaxTranslator {
 public:
  SyntaxTranslator(std::string_view source, std::string_view where) : source_(source), where_(where) {}

  Result<std::string> run() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '\\') {
        HONE_TRY(escape());
      } else if (in_class_) {
        HONE_TRY(inside_class(c));
      } else {
        HONE_TRY(outside_class(c));
      }
    }
    return std::move(out_);
  }

 private:
  Error refuse(std::string_view what) const {
    return unsupported_tokenizer(fmt::format("{}, byte {} of the expression", where_, at_),
                                 "the expression's syntax", what, "Perl's syntax");
  }
  char next(std::size_t ahead) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  void take(std::size_t count) {
    out_.append(source_.substr(at_, count));
    at_ += count;
  }

  Status escape() {
    const char c = next(1);
    if (c == 'h' || c == 'H' || c == 'G' || c == 'R' || c == 'X' || c == 'K' || c == 'y' || c == 'Y' ||
        c == 'Q') {
      return refuse(fmt::format("\\{}", c));
    }
    if (c == 's' || c == 'w') {
      const std::string_view set = c == 's' ? kSpaces : kWordCharacters;
      out_ += in_class_ ? std::string(set) : fmt::format("[{}]", set);
      at_ += 2;
    } else if (c == 'S' || c == 'W') {
      if (in_class_) {
        (c == 'S' ? class_.not_space : class_.not_word) = true;
      } else {
        out_ += fmt::format("[^{}]", c == 'S' ? kSpaces : kWordCharacters);
      }
      at_ += 2;
    } else if (next(2) == '{') {
      const std::size_t end = source_.find('}', at_);  // \p{L}, \x{85}
      take((end == std::string_view::npos ? source_.size() : end + 1) - at_);
    } else {
      take(2);
    }
    return {};
  }

  Status inside_class(char c) {
    if (c == '[' && next(1) != ':') return refuse("[ in a class");
    if (c == '[') {
      const std::size_t end = source_.find(":]", at_ + 2);
      if (end == std::string_view::npos) return refuse("[: in a class");
      take(end + 2 - at_);
      return {};
    }
    if (c == '&' && next(1) == '&') return refuse("&& in a class");
    take(1);
    if (c == ']') end_class();
    return {};
  }

  // A class cannot hold the negation of a set, so \S and \W in it become what the class lacks: a character
  // outside of its other members that is a space, or a word character.
  void end_class() {
    in_class_ = false;
    if (!class_.not_space && !class_.not_word) return;
    const std::size_t members = class_.begin + (class_.negated ? 2 : 1);
    const std::string others = out_.substr(members, out_.size() - 1 - members);
    std::string lacks = others.empty() ? "" : fmt::format("(?![{}])", others);
    if (class_.not_space && class_.not_word) lacks += fmt::format("(?=[{}])", kSpaces);
    lacks += fmt::format("[{}]", class_.not_word ? kWordCharacters : kSpaces);
    out_.resize(class_.begin);
    out_ += class_.negated ? fmt::format("(?:{})", lacks) : fmt::format("(?:(?!{})(?s:.))", lacks);
  }

  Status outside_class(char c) {
    if (c == '}' && next(1) == '+') return refuse("}+");
    if (c == '(' && next(1) == '?' && (next(2) == 'm' || next(2) == 'x' || next(2) == '~')) {
      return refuse(source_.substr(at_, 3));
    }
    if (c == '(' && next(1) == '*') return refuse("(*");
    if (c == '[') {
      in_class_ = true;
      class_ = {out_.size(), next(1) == '^'};
      take(class_.negated ? 2 : 1);
      if (next(0) == ']') return refuse("] as the first of a class");
      return {};
    }
    take(1);
    return {};
  }

  std::string_view source_;
  std::string_view where_;
  std::size_t at_ = 0;
  struct Class {
    std::size_t begin = 0;  // of its [ in out_
    bool negated = false;
    bool not_space = false;  // it holds \S
    bool not_word = false;   // it holds \W
  };
  Class class_;
  bool in_class_ = false;
  std::string out_;
};

}  // namespace

void ExpressionScratch::Free::operator()(pcre2_match_data_8* data) const {
  pcre2_match_data_free_8(data);
}
void ExpressionScratch::Free::operator()(pcre2_match_context_8* context) const {
  pcre2_match_context_free_8(context);
}
void Expression::Free::operator()(pcre2_code_8* code) const {
  pcre2_code_free_8(code);
}

ExpressionScratch::ExpressionScratch()
    : data_(pcre2_match_data_create_8(1, nullptr)), context_(pcre2_match_context_create_8(nullptr)) {}

Result<Expression> Expression::compile(const TextPattern& pattern, std::string_view where) {
  if (pattern.text.size() > kMaxExpression || pattern.text.empty()) {
    return bad_tokenizer(std::string(where), "an expression has from 1 to 65536 bytes", {},
                         fmt::format("{}", pattern.text.size()));
  }
  std::string source = pattern.text;
  std::uint32_t options = PCRE2_UTF | PCRE2_LITERAL;
  if (pattern.is_expression) {
    source = HONE_TRY(SyntaxTranslator(pattern.text, where).run());
    options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
  }
  int error = 0;
  PCRE2_SIZE at = 0;
  Expression out;
  out.code_.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(source.data()), source.size(), options,
                                  &error, &at, nullptr));
  if (out.code_ == nullptr) {
    return bad_tokenizer(std::string(where), "an expression must compile", "a regular expression",
                         fmt::format("{} at byte {} of its translation", pcre2_reason(error), at));
  }
  // Where there is no JIT compiler this fails, and pcre2_match interprets.
  pcre2_jit_compile_8(out.code_.get(), PCRE2_JIT_COMPLETE);
  return out;
}

Status Expression::set_limit(std::string_view text, ExpressionScratch& scratch) {
  if (!scratch.data_ || !scratch.context_) return internal_error("expression", "no memory for a match");
  // Enough for what is linear in the text, and a bound on what is not.
  const std::uint64_t limit = 1'000'000 + 16 * static_cast<std::uint64_t>(text.size());
  const auto wanted =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(limit, std::numeric_limits<std::uint32_t>::max()));
  if (wanted != scratch.limit_) pcre2_set_match_limit_8(scratch.context_.get(), wanted);
  scratch.limit_ = wanted;
  return {};
}

Result<std::optional<TextSpan>> Expression::find(std::string_view text, std::uint32_t start,
                                                 ExpressionScratch& scratch) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
  const std::uint32_t options = PCRE2_NO_UTF_CHECK;
  int rc = pcre2_match_8(code_.get(), subject, text.size(), start, options, scratch.data_.get(),
                         scratch.context_.get());
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
    rc = pcre2_match_8(code_.get(), subject, text.size(), start, options | PCRE2_NO_JIT, scratch.data_.get(),
                       scratch.context_.get());
  }
  if (rc == PCRE2_ERROR_NOMATCH) return std::optional<TextSpan>{};
  if (rc < 0) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 fmt::format("text, byte {}", start),
                 fmt::format("cutting the text into words ran out of its limit: {}", pcre2_reason(rc)),
                 {},
                 {},
                 "split the text"};
  }
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer_8(scratch.data_.get());
  return std::optional<TextSpan>(
      {static_cast<std::uint32_t>(std::min(span[0], span[1])), static_cast<std::uint32_t>(span[1])});
}

std::uint32_t Expression::next_character(std::string_view text, std::uint32_t at) {
  return at >= text.size() ? at + 1 : at + utf8_step(text.substr(at)).length;
}

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_word_character(char32_t c) {
  if ((c >= 0x24B6 && c <= 0x24E9) || c == 0x200C || c == 0x200D) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace hone
