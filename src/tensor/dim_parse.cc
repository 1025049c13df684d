// The text form of a Dim, read back: sums of products of integers, symbols, max(...) and ceil_div(..., n).
#include <cctype>
#include <charconv>
#include <fmt/format.h>

#include "tensor/dim.h"

namespace hone {

class DimParser {
 public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Result<Dim> parse() {
    Dim out = HONE_TRY(sum(0));
    skip_spaces();
    if (at_ != text_.size()) return fail("the end of the expression");
    if (out.overflowed()) return fail("coefficients that fit 64 bits");
    return out;
  }

 private:
  static constexpr int kMaxDepth = 32;  // nesting of max and ceil_div; hostile text must not use up the stack

  Error fail(std::string_view expected) const {
    return Error{
        ErrorCode::BadInput,
        Fault::User,
        fmt::format("dimension '{}', column {}", text_, at_ + 1),
        "a dimension is a sum of products of integers, one-letter symbols, max(a, b) and ceil_div(a, n)",
        std::string(expected),
        at_ < text_.size() ? std::string(1, text_[at_]) : "the end",
        {}};
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Result<std::int64_t> integer() {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return fail("an integer");
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  Result<Dim> sum(int depth) {
    if (depth > kMaxDepth) return fail("at most 32 levels of nesting");
    const bool negative = take('-');
    Dim out = HONE_TRY(product(depth));
    if (negative) out = out * Dim(-1);
    while (true) {
      if (take('+')) {
        out = out + HONE_TRY(product(depth));
      } else if (take('-')) {
        out = out - HONE_TRY(product(depth));
      } else {
        return out;
      }
    }
  }
  Result<Dim> product(int depth) {
    Dim out = HONE_TRY(factor(depth));
    while (take('*')) out = out * HONE_TRY(factor(depth));
    return out;
  }
  Result<Dim> factor(int depth) {
    skip_spaces();
    if (take_word("max(")) {
      Dim out = HONE_TRY(sum(depth + 1));
      while (take(',')) out = max(out, HONE_TRY(sum(depth + 1)));
      if (!take(')')) return fail("')'");
      return out;
    }
    if (take_word("ceil_div(")) {
      const Dim numerator = HONE_TRY(sum(depth + 1));
      if (!take(',')) return fail("','");
      const std::int64_t divisor = HONE_TRY(integer());
      if (divisor < 1) return fail("a divisor of at least 1");
      if (!take(')')) return fail("')'");
      return ceil_div(numerator, divisor);
    }
    if (at_ < text_.size() && std::isupper(static_cast<unsigned char>(text_[at_])) != 0) {
      return Dim::symbol(text_[at_++]);
    }
    return Dim(HONE_TRY(integer()));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

Result<Dim> Dim::parse(std::string_view text) {
  return DimParser(text).parse();
}

}  // namespace hone
