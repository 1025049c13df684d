#include "tokens/jinja_expression_parser.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"

namespace hone::jinja {

namespace {

// Undone when the nested construct is left.
class DepthGuard {
 public:
  explicit DepthGuard(std::int32_t& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  std::int32_t& depth_;
};

}  // namespace

bool ExpressionParser::take_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  advance();
  return true;
}

bool ExpressionParser::take_word(std::string_view text) {
  if (!is_word(text)) return false;
  advance();
  return true;
}

Error ExpressionParser::unexpected() const {
  switch (now().kind) {
    case Token::Kind::VariableEnd:
      return source_.error(now().offset, "unexpected end of print statement");
    case Token::Kind::BlockEnd:
      return source_.error(now().offset, "unexpected end of statement block");
    case Token::Kind::Name:
    case Token::Kind::Operator:
      return source_.error(now().offset, fmt::format("unexpected '{}'", now().text));
    case Token::Kind::End:
      return source_.error(now().offset, "unexpected end of template");
    default:
      return source_.error(now().offset, "unexpected literal");
  }
}

Status ExpressionParser::expect_operator(std::string_view text) {
  if (take_operator(text)) return {};
  Error error = unexpected();
  error.expected = fmt::format("'{}'", text);
  return error;
}

std::string_view ExpressionParser::operator_among(std::initializer_list<std::string_view> operators) const {
  if (now().kind != Token::Kind::Operator) return {};
  const auto found = std::find(operators.begin(), operators.end(), now().text);
  return found == operators.end() ? std::string_view{} : *found;
}

ExprPtr ExpressionParser::make(ExprKind kind, std::uint32_t offset) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->offset = offset;
  return node;
}

Status ExpressionParser::add(Expr& parent, Result<ExprPtr> parsed) const {
  ExprPtr child = HONE_TRY(std::move(parsed));
  if (child) parent.height = std::max(parent.height, child->height + 1);
  const std::uint32_t offset = child ? child->offset : parent.offset;
  parent.children.push_back(std::move(child));
  if (parent.height > 4 * max_depth_) return source_.error(offset, "an expression is nested too deeply");
  return {};
}

Result<ExprPtr> ExpressionParser::make_binary(ExprKind kind, std::string_view op, std::uint32_t offset,
                                              ExprPtr left, Result<ExprPtr> right) const {
  ExprPtr node = make(kind, offset);
  node->text = op;
  HONE_TRY(add(*node, std::move(left)));
  HONE_TRY(add(*node, std::move(right)));
  return node;
}

bool ExpressionParser::ends_tuple() const {
  return now().kind == Token::Kind::VariableEnd || now().kind == Token::Kind::BlockEnd || is_operator(")") ||
         is_word("in") || is_word("recursive") || now().kind == Token::Kind::End;
}

Result<ExprPtr> ExpressionParser::parse_tuple(bool inline_if) {
  const std::uint32_t offset = now().offset;
  ExprPtr first = HONE_TRY(inline_if ? parse_inline_if() : parse_or());
  if (!is_operator(",")) return first;
  ExprPtr tuple = make(ExprKind::Tuple, offset);
  HONE_TRY(add(*tuple, std::move(first)));
  while (take_operator(",")) {
    if (ends_tuple()) break;
    HONE_TRY(add(*tuple, inline_if ? parse_inline_if() : parse_or()));
  }
  return tuple;
}

Result<ExprPtr> ExpressionParser::parse_inline_if() {
  const DepthGuard guard(depth_);
  if (depth_ > max_depth_) return source_.error(now().offset, "an expression is nested too deeply");
  ExprPtr node = HONE_TRY(parse_or());
  while (is_word("if")) {
    const std::uint32_t offset = now().offset;
    advance();
    ExprPtr out = make(ExprKind::InlineIf, offset);
    HONE_TRY(add(*out, parse_or()));
    HONE_TRY(add(*out, std::move(node)));
    HONE_TRY(add(*out, take_word("else") ? parse_inline_if() : Result<ExprPtr>(ExprPtr{})));
    node = std::move(out);
  }
  return node;
}

Result<ExprPtr> ExpressionParser::parse_or() {
  ExprPtr left = HONE_TRY(parse_and());
  while (is_word("or")) {
    const std::uint32_t offset = now().offset;
    advance();
    left = HONE_TRY(make_binary(ExprKind::Or, "or", offset, std::move(left), parse_and()));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_and() {
  ExprPtr left = HONE_TRY(parse_not());
  while (is_word("and")) {
    const std::uint32_t offset = now().offset;
    advance();
    left = HONE_TRY(make_binary(ExprKind::And, "and", offset, std::move(left), parse_not()));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_not() {
  if (!is_word("not")) return parse_compare();
  const DepthGuard guard(depth_);
  if (depth_ > max_depth_) return source_.error(now().offset, "an expression is nested too deeply");
  ExprPtr node = make(ExprKind::Not, now().offset);
  advance();
  HONE_TRY(add(*node, parse_not()));
  return node;
}

Result<ExprPtr> ExpressionParser::parse_compare() {
  ExprPtr first = HONE_TRY(parse_sum());
  ExprPtr chain;
  while (true) {
    std::string op(operator_among({"==", "!=", "<", "<=", ">", ">="}));
    const std::uint32_t offset = now().offset;
    if (op.empty() && is_word("in")) op = "in";
    if (op.empty() && is_word("not") && ahead().kind == Token::Kind::Name && ahead().text == "in") {
      op = "not in";
      advance();
    }
    if (op.empty()) break;
    advance();
    if (!chain) {
      chain = make(ExprKind::Compare, offset);
      HONE_TRY(add(*chain, std::move(first)));
    }
    chain->words.push_back(std::move(op));
    HONE_TRY(add(*chain, parse_sum()));
  }
  return chain ? std::move(chain) : std::move(first);
}

Result<ExprPtr> ExpressionParser::parse_sum() {
  ExprPtr left = HONE_TRY(parse_concat());
  for (auto op = operator_among({"+", "-"}); !op.empty(); op = operator_among({"+", "-"})) {
    const std::uint32_t offset = now().offset;
    advance();
    left = HONE_TRY(make_binary(ExprKind::Binary, op, offset, std::move(left), parse_concat()));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_concat() {
  ExprPtr first = HONE_TRY(parse_product());
  if (!is_operator("~")) return first;
  ExprPtr node = make(ExprKind::Concat, now().offset);
  HONE_TRY(add(*node, std::move(first)));
  while (take_operator("~")) HONE_TRY(add(*node, parse_product()));
  return node;
}

Result<ExprPtr> ExpressionParser::parse_product() {
  ExprPtr left = HONE_TRY(parse_power());
  for (auto op = operator_among({"*", "/", "//", "%"}); !op.empty();
       op = operator_among({"*", "/", "//", "%"})) {
    const std::uint32_t offset = now().offset;
    advance();
    left = HONE_TRY(make_binary(ExprKind::Binary, op, offset, std::move(left), parse_power()));
  }
  return left;
}

// Jinja binds unary minus tighter than `**`, and groups `**` to the left: not as Python does.
Result<ExprPtr> ExpressionParser::parse_power() {
  ExprPtr left = HONE_TRY(parse_unary(true));
  while (is_operator("**")) {
    const std::uint32_t offset = now().offset;
    advance();
    left = HONE_TRY(make_binary(ExprKind::Binary, "**", offset, std::move(left), parse_unary(true)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::parse_unary(bool with_filter) {
  const std::string_view sign = operator_among({"-", "+"});
  ExprPtr node;
  if (sign.empty()) {
    node = HONE_TRY(parse_primary());
  } else {
    const DepthGuard guard(depth_);
    if (depth_ > max_depth_) return source_.error(now().offset, "an expression is nested too deeply");
    node = make(sign == "-" ? ExprKind::Negate : ExprKind::Positive, now().offset);
    advance();
    HONE_TRY(add(*node, parse_unary(false)));
  }
  node = HONE_TRY(parse_postfix(std::move(node)));
  return with_filter ? parse_filters(std::move(node)) : Result<ExprPtr>(std::move(node));
}

Result<ExprPtr> ExpressionParser::parse_primary() {
  const Token& token = now();
  switch (token.kind) {
    case Token::Kind::Name:
      return parse_name();
    case Token::Kind::String:
      return parse_string();
    case Token::Kind::Integer:
    case Token::Kind::Float: {
      ExprPtr node =
          make(token.kind == Token::Kind::Integer ? ExprKind::Integer : ExprKind::Float, token.offset);
      node->integer = token.integer;
      node->real = token.real;
      node->text = token.text;
      advance();
      return node;
    }
    default:
      break;
  }
  if (is_operator("(")) return parse_parentheses();
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  return unexpected();
}

Result<ExprPtr> ExpressionParser::parse_name() {
  const Token& token = now();
  ExprKind kind = ExprKind::Name;
  if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
    kind = ExprKind::Boolean;
  } else if (token.text == "none" || token.text == "None") {
    kind = ExprKind::None;
  } else if (token.text == "self" || token.text == "lipsum") {
    return source_.unsupported(token.offset, fmt::format("the name '{}'", token.text));
  }
  special_names_.caller = special_names_.caller || token.text == "caller";
  special_names_.kwargs = special_names_.kwargs || token.text == "kwargs";
  special_names_.varargs = special_names_.varargs || token.text == "varargs";
  ExprPtr node = make(kind, token.offset);
  node->integer = token.text == "true" || token.text == "True" ? 1 : 0;
  if (kind == ExprKind::Name) node->text = token.text;
  advance();
  return node;
}

Result<ExprPtr> ExpressionParser::parse_string() {
  ExprPtr node = make(ExprKind::String, now().offset);
  // Strings side by side are one.
  while (now().kind == Token::Kind::String) {
    node->text += now().text;
    advance();
  }
  return node;
}

Result<ExprPtr> ExpressionParser::parse_parentheses() {
  const std::uint32_t offset = now().offset;
  advance();
  if (take_operator(")")) return make(ExprKind::Tuple, offset);
  ExprPtr node = HONE_TRY(parse_tuple(true));
  HONE_TRY(expect_operator(")"));
  return node;
}

Result<ExprPtr> ExpressionParser::parse_list() {
  ExprPtr node = make(ExprKind::List, now().offset);
  advance();
  while (!is_operator("]")) {
    if (!node->children.empty()) {
      HONE_TRY(expect_operator(","));
      if (is_operator("]")) break;
    }
    HONE_TRY(add(*node, parse_expression()));
  }
  advance();
  return node;
}

Result<ExprPtr> ExpressionParser::parse_dict() {
  ExprPtr node = make(ExprKind::Dict, now().offset);
  advance();
  while (!is_operator("}")) {
    if (!node->children.empty()) {
      HONE_TRY(expect_operator(","));
      if (is_operator("}")) break;
    }
    HONE_TRY(add(*node, parse_expression()));
    HONE_TRY(expect_operator(":"));
    HONE_TRY(add(*node, parse_expression()));
  }
  advance();
  return node;
}

Result<ExprPtr> ExpressionParser::parse_postfix(ExprPtr node) {
  while (true) {
    const std::uint32_t offset = now().offset;
    if (take_operator(".")) {
      const bool is_index = now().kind == Token::Kind::Integer && now().text.empty();
      if (!is_index && now().kind != Token::Kind::Name) return unexpected();
      ExprPtr out = make(is_index ? ExprKind::Item : ExprKind::Attribute, now().offset);
      HONE_TRY(add(*out, std::move(node)));
      if (is_index) {
        ExprPtr index = make(ExprKind::Integer, now().offset);
        index->integer = now().integer;
        HONE_TRY(add(*out, std::move(index)));
      } else {
        out->text = now().text;
      }
      advance();
      node = std::move(out);
    } else if (is_operator("[")) {
      node = HONE_TRY(parse_subscript(std::move(node)));
    } else if (is_operator("(")) {
      ExprPtr call = make(ExprKind::Call, offset);
      HONE_TRY(add(*call, std::move(node)));
      HONE_TRY(parse_arguments(*call));
      node = std::move(call);
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_subscript(ExprPtr node) {
  const std::uint32_t offset = now().offset;
  advance();
  std::vector<ExprPtr> parts;
  bool slice = false;
  const auto ends_part = [&] { return is_operator(":") || is_operator("]") || is_operator(","); };
  parts.push_back(ends_part() ? nullptr : HONE_TRY(parse_expression()));
  while (parts.size() < 3 && take_operator(":")) {
    slice = true;
    parts.push_back(ends_part() ? nullptr : HONE_TRY(parse_expression()));
  }
  if (is_operator(",")) return source_.unsupported(now().offset, "an index with a comma");
  HONE_TRY(expect_operator("]"));
  if (!slice && !parts[0]) return source_.error(offset, "an index is empty");
  if (slice) parts.resize(3);
  ExprPtr out = make(slice ? ExprKind::Slice : ExprKind::Item, offset);
  HONE_TRY(add(*out, std::move(node)));
  for (ExprPtr& part : parts) HONE_TRY(add(*out, std::move(part)));
  return out;
}

Status ExpressionParser::parse_arguments(Expr& call) {
  HONE_TRY(expect_operator("("));
  bool first = true;
  while (!is_operator(")")) {
    if (!first) {
      HONE_TRY(expect_operator(","));
      if (is_operator(")")) break;
    }
    first = false;
    if (is_operator("*") || is_operator("**")) {
      ExprPtr star = make(is_operator("*") ? ExprKind::Star : ExprKind::DoubleStar, now().offset);
      for (const std::string& word : call.words) {
        // Nothing but `**` after `**`, and no second `*`.
        if (word == "**" || (word == "*" && star->kind == ExprKind::Star)) return unexpected();
      }
      call.words.emplace_back(now().text);
      advance();
      HONE_TRY(add(*star, parse_expression()));
      HONE_TRY(add(call, Result<ExprPtr>(std::move(star))));
      continue;
    }
    if (now().kind == Token::Kind::Name && ahead().kind == Token::Kind::Operator && ahead().text == "=") {
      call.words.push_back(now().text);
      advance();
      advance();
    } else if (!call.words.empty()) {
      return source_.error(now().offset, "a positional argument follows one with a name");
    }
    HONE_TRY(add(call, parse_expression()));
  }
  advance();
  return {};
}

// At the name of a filter.
Result<ExprPtr> ExpressionParser::parse_filter(ExprPtr node) {
  if (now().kind != Token::Kind::Name) return unexpected();
  ExprPtr filter = make(ExprKind::Filter, now().offset);
  filter->text = now().text;
  advance();
  while (take_operator(".")) {
    if (now().kind != Token::Kind::Name) return unexpected();
    filter->text += "." + now().text;
    advance();
  }
  if (is_unsupported_filter(filter->text)) {
    return source_.unsupported(filter->offset, fmt::format("filter '{}'", filter->text));
  }
  if (!soft_ && !is_known_filter(filter->text)) {
    return source_.error(filter->offset, fmt::format("No filter named '{}'.", filter->text));
  }
  HONE_TRY(add(*filter, std::move(node)));
  if (is_operator("(")) HONE_TRY(parse_arguments(*filter));
  return filter;
}

Result<ExprPtr> ExpressionParser::parse_block_filters() {
  ExprPtr node = make(ExprKind::Captured, now().offset);
  if (!is_operator("|")) node = HONE_TRY(parse_filter(std::move(node)));
  while (take_operator("|")) node = HONE_TRY(parse_filter(std::move(node)));
  return node;
}

Result<ExprPtr> ExpressionParser::parse_filters(ExprPtr node) {
  while (true) {
    if (take_operator("|")) {
      node = HONE_TRY(parse_filter(std::move(node)));
    } else if (is_word("is")) {
      node = HONE_TRY(parse_test(std::move(node)));
    } else if (is_operator("(")) {
      ExprPtr call = make(ExprKind::Call, now().offset);
      HONE_TRY(add(*call, std::move(node)));
      HONE_TRY(parse_arguments(*call));
      node = std::move(call);
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::parse_test(ExprPtr node) {
  advance();
  const bool negated = take_word("not");
  if (now().kind != Token::Kind::Name) return unexpected();
  ExprPtr test = make(ExprKind::Test, now().offset);
  test->text = now().text;
  test->integer = negated ? 1 : 0;
  advance();
  while (take_operator(".")) {
    if (now().kind != Token::Kind::Name) return unexpected();
    test->text += "." + now().text;
    advance();
  }
  if (!soft_ && !is_known_test(test->text)) {
    return source_.error(test->offset, fmt::format("No test named '{}'.", test->text));
  }
  HONE_TRY(add(*test, std::move(node)));
  if (is_operator("(")) {
    HONE_TRY(parse_arguments(*test));
    return test;
  }
  const bool name = now().kind == Token::Kind::Name && !is_word("else") && !is_word("or") && !is_word("and");
  const bool literal = now().kind == Token::Kind::String || now().kind == Token::Kind::Integer ||
                       now().kind == Token::Kind::Float || is_operator("[") || is_operator("{");
  if (name && is_word("is")) return source_.error(now().offset, "tests cannot be chained with 'is'");
  if (name || literal) {
    ExprPtr argument = HONE_TRY(parse_primary());
    HONE_TRY(add(*test, parse_postfix(std::move(argument))));
  }
  return test;
}

}  // namespace hone::jinja
