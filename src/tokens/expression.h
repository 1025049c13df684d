// Regular expressions over UTF-8 text, by PCRE2 with its compiler. Written for the syntax of Oniguruma, which
// tokenizer.json's expressions are in; what the two read differently is translated or refused.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;

namespace hone {

// Working memory of one caller. Not to be shared between threads.
class ExpressionScratch {
 public:
  ExpressionScratch();

 private:
  friend class Expression;
  struct Free {
    void operator()(pcre2_real_match_data_8* data) const;
    void operator()(pcre2_real_match_context_8* context) const;
  };
  std::unique_ptr<pcre2_real_match_data_8, Free> data_;
  std::unique_ptr<pcre2_real_match_context_8, Free> context_;
  std::uint32_t limit_ = 0;
};

struct TextSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// Immutable; const members may be called from several threads at once.
class Expression {
 public:
  // Errors: BadModel, at `where`, for an expression that does not compile, that is longer than 64 KiB, or
  // that uses what is not supported: nested classes, && in a class, \h, \G, a count followed by +.
  static Result<Expression> compile(const TextPattern& pattern, std::string_view where);

  // All successive matches in `text`, which must be well-formed UTF-8 under 2^31 bytes, as visit(begin, end).
  // An empty match right behind the match before it is none. A limit in proportion to the text bounds the
  // steps of each search; beyond it, error BadInput.
  template <class Visit>
  Status for_each_match(std::string_view text, ExpressionScratch& scratch, Visit&& visit) const {
    HONE_TRY(set_limit(text, scratch));
    std::uint32_t start = 0;
    std::optional<std::uint32_t> last_end;
    while (start <= text.size()) {
      const std::optional<TextSpan> match = HONE_TRY(find(text, start, scratch));
      if (!match) break;
      if (match->begin == match->end && last_end == match->end) {
        start = next_character(text, start);
        continue;
      }
      visit(match->begin, match->end);
      start = match->end;
      last_end = match->end;
    }
    return {};
  }

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  Expression() = default;
  static Status set_limit(std::string_view text, ExpressionScratch& scratch);
  Result<std::optional<TextSpan>> find(std::string_view text, std::uint32_t start,
                                       ExpressionScratch& scratch) const;
  static std::uint32_t next_character(std::string_view text, std::uint32_t at);

  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

// Unicode's property White_Space.
bool is_white_space(char32_t code_point);
// What \w means to Oniguruma and to Unicode's UTS 18: alphabetic, a mark, a decimal digit, a connector.
bool is_word_character(char32_t code_point);

}  // namespace hone
