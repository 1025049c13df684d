// The expression half of the parser.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokens/jinja_ast.h"
#include "tokens/jinja_lexer.h"
#include "tokens/jinja_source.h"

namespace hone::jinja {

class ExpressionParser {
 public:
  ExpressionParser(const Source& source, const std::vector<Token>& tokens, std::int32_t max_depth)
      : source_(source), tokens_(tokens), max_depth_(max_depth) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  // The End token is never passed.
  void advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_operator(std::string_view text) const {
    return now().kind == Token::Kind::Operator && now().text == text;
  }
  bool is_word(std::string_view text) const { return now().kind == Token::Kind::Name && now().text == text; }
  bool take_operator(std::string_view text);
  bool take_word(std::string_view text);
  Status expect_operator(std::string_view text);
  // "unexpected ..." at the current token.
  Error unexpected() const;

  Result<ExprPtr> parse_expression() { return parse_inline_if(); }
  // One expression, or several with commas between them as a tuple. `inline_if`: the elements may be inline
  // ifs.
  Result<ExprPtr> parse_tuple(bool inline_if);
  // `| f | g(1)` or `f | g(1)`, on the text of a block (ExprKind::Captured).
  Result<ExprPtr> parse_block_filters();

  // Where code may never run (branches), Jinja finds out only when it runs that a filter or test does not
  // exist. Gives the state before.
  bool set_soft(bool soft) { return std::exchange(soft_, soft); }

  // Of the names that a macro gives its body, those met since they were taken last.
  struct SpecialNames {
    bool caller = false;
    bool kwargs = false;
    bool varargs = false;
  };
  SpecialNames take_special_names() { return std::exchange(special_names_, {}); }
  void add_special_names(const SpecialNames& names) {
    special_names_.caller = special_names_.caller || names.caller;
    special_names_.kwargs = special_names_.kwargs || names.kwargs;
    special_names_.varargs = special_names_.varargs || names.varargs;
  }

 private:
  Result<ExprPtr> parse_inline_if();
  Result<ExprPtr> parse_or();
  Result<ExprPtr> parse_and();
  Result<ExprPtr> parse_not();
  Result<ExprPtr> parse_compare();
  Result<ExprPtr> parse_sum();
  Result<ExprPtr> parse_concat();
  Result<ExprPtr> parse_product();
  Result<ExprPtr> parse_power();
  Result<ExprPtr> parse_unary(bool with_filter);
  Result<ExprPtr> parse_primary();
  Result<ExprPtr> parse_name();
  Result<ExprPtr> parse_string();
  Result<ExprPtr> parse_parentheses();
  Result<ExprPtr> parse_list();
  Result<ExprPtr> parse_dict();
  Result<ExprPtr> parse_postfix(ExprPtr node);
  Result<ExprPtr> parse_subscript(ExprPtr node);
  Result<ExprPtr> parse_filters(ExprPtr node);
  Result<ExprPtr> parse_filter(ExprPtr node);
  Result<ExprPtr> parse_test(ExprPtr node);
  Status parse_arguments(Expr& call);
  bool ends_tuple() const;

  // The operator at hand if it is one of `operators`, else an empty view.
  std::string_view operator_among(std::initializer_list<std::string_view> operators) const;
  ExprPtr make(ExprKind kind, std::uint32_t offset) const;
  // Appends what was parsed; a null pointer stands for a part left out.
  Status add(Expr& parent, Result<ExprPtr> parsed) const;
  Result<ExprPtr> make_binary(ExprKind kind, std::string_view op, std::uint32_t offset, ExprPtr left,
                              Result<ExprPtr> right) const;

  const Source& source_;
  const std::vector<Token>& tokens_;
  std::int32_t max_depth_;
  std::int32_t depth_ = 0;
  std::size_t at_ = 0;
  bool soft_ = false;
  SpecialNames special_names_;
};

}  // namespace hone::jinja
