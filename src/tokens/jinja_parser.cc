#include "tokens/jinja_parser.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "tokens/jinja_expression_parser.h"
#include "tokens/jinja_scopes.h"

namespace hone::jinja {

namespace {

class StatementParser {
 public:
  StatementParser(const Source& source, const std::vector<Token>& tokens, std::int32_t max_depth)
      : source_(source), in_(source, tokens, max_depth), max_depth_(max_depth) {}

  Result<Block> run() {
    Block out;
    HONE_TRY(parse_block({}, "template", 0, out));
    return out;
  }

 private:
  // Statements up to a tag named in `ends`, whose name stands at the current token afterwards. Without
  // `ends`: up to the end of the template. `opener` began at `offset`.
  Status parse_block(std::initializer_list<std::string_view> ends, std::string_view opener,
                     std::uint32_t offset, Block& out) {
    if (++depth_ > max_depth_) return source_.error(offset, "blocks are nested too deeply");
    while (true) {
      const Token& token = in_.now();
      if (token.kind == Token::Kind::End) {
        if (ends.size() == 0) break;
        return source_.error(offset,
                             fmt::format("Unexpected end of template: the block '{}' has no end", opener));
      }
      if (token.kind == Token::Kind::Data) {
        Statement text;
        text.kind = StatementKind::Text;
        text.offset = token.offset;
        text.text = token.text;
        out.push_back(std::move(text));
        in_.advance();
      } else if (token.kind == Token::Kind::VariableBegin) {
        HONE_TRY(parse_print(out));
      } else {
        in_.advance();  // BlockBegin
        if (in_.now().kind != Token::Kind::Name) return in_.unexpected();
        if (std::find(ends.begin(), ends.end(), in_.now().text) != ends.end()) break;
        HONE_TRY(parse_statement(out));
      }
    }
    --depth_;
    return {};
  }

  Status expect(Token::Kind kind) {
    if (in_.now().kind != kind) return in_.unexpected();
    in_.advance();
    return {};
  }

  // Past the name of an end tag and the end of its block.
  Status finish_tag() {
    in_.advance();
    return expect(Token::Kind::BlockEnd);
  }

  Statement start(StatementKind kind) const {
    Statement out;
    out.kind = kind;
    out.offset = in_.now().offset;
    return out;
  }

  Status parse_print(Block& out) {
    Statement print = start(StatementKind::Print);
    in_.advance();
    print.value = HONE_TRY(in_.parse_tuple(true));
    out.push_back(std::move(print));
    return expect(Token::Kind::VariableEnd);
  }

  Status parse_statement(Block& out) {
    const Token& tag = in_.now();
    if (tag.text == "if") return parse_if(out);
    if (tag.text == "for") return parse_for(out);
    if (tag.text == "set") return parse_set(out);
    if (tag.text == "with") return parse_with(out);
    if (tag.text == "macro") return parse_macro(out);
    if (tag.text == "call") return parse_call(out);
    if (tag.text == "filter") return parse_filter(out);
    if (tag.text == "generation") return parse_generation(out);
    if (tag.text == "break" || tag.text == "continue") return parse_jump(out);
    constexpr std::array<std::string_view, 7> kKnown{"block", "extends", "include",   "import",
                                                     "from",  "print",   "autoescape"};
    if (std::find(kKnown.begin(), kKnown.end(), tag.text) != kKnown.end()) {
      return source_.unsupported(tag.offset, fmt::format("tag '{}'", tag.text));
    }
    return source_.error(tag.offset, fmt::format("Encountered unknown tag '{}'.", tag.text));
  }

  // The body of `statement` up to `end`, past that tag. Inside, a jump finds no loop.
  Status parse_body(Statement& statement, std::string_view opener, std::string_view end) {
    const int outer = std::exchange(loops_, 0);
    const bool soft = in_.set_soft(false);
    HONE_TRY(parse_block({end}, opener, statement.offset, statement.body));
    static_cast<void>(in_.set_soft(soft));
    loops_ = outer;
    return finish_tag();
  }

  Status parse_if(Block& out) {
    Statement statement = start(StatementKind::If);
    const bool soft = in_.set_soft(true);
    while (true) {
      in_.advance();  // `if` or `elif`
      auto& branch = statement.branches.emplace_back();
      branch.first = HONE_TRY(in_.parse_tuple(false));
      HONE_TRY(expect(Token::Kind::BlockEnd));
      HONE_TRY(parse_block({"elif", "else", "endif"}, "if", statement.offset, branch.second));
      if (!in_.is_word("elif")) break;
    }
    if (in_.is_word("else")) {
      HONE_TRY(finish_tag());
      HONE_TRY(parse_block({"endif"}, "if", statement.offset, statement.body));
    }
    static_cast<void>(in_.set_soft(soft));
    out.push_back(std::move(statement));
    return finish_tag();
  }

  // `a`, `(a, b)`, and where `attributes`: `a.b`.
  Result<Target> parse_single_target(bool attributes) {
    Target target;
    target.offset = in_.now().offset;
    if (in_.take_operator("(")) {
      if (++depth_ > max_depth_) return source_.error(target.offset, "blocks are nested too deeply");
      target = HONE_TRY(parse_target(attributes));
      --depth_;
      HONE_TRY(in_.expect_operator(")"));
      return target;
    }
    const Token& name = in_.now();
    if (name.kind != Token::Kind::Name) return in_.unexpected();
    constexpr std::array<std::string_view, 9> kReserved{"true", "false", "none", "True", "False",
                                                        "None", "and",   "or",   "not"};
    if (std::find(kReserved.begin(), kReserved.end(), name.text) != kReserved.end() ||
        (name.text == "loop" && in_for_ > 0)) {
      return source_.error(name.offset, fmt::format("nothing can be assigned to '{}'", name.text));
    }
    target.name = name.text;
    in_.advance();
    if (attributes && in_.take_operator(".")) {
      if (in_.now().kind != Token::Kind::Name) return in_.unexpected();
      target.attribute = in_.now().text;
      in_.advance();
    }
    return target;
  }

  // One target, or several with commas between them.
  Result<Target> parse_target(bool attributes) {
    Target first = HONE_TRY(parse_single_target(attributes));
    if (!in_.is_operator(",")) return first;
    Target tuple;
    tuple.offset = first.offset;
    tuple.is_tuple = true;
    tuple.parts.push_back(std::move(first));
    while (in_.take_operator(",")) {
      if (in_.is_operator(")") || in_.is_word("in")) break;
      tuple.parts.push_back(HONE_TRY(parse_single_target(attributes)));
    }
    return tuple;
  }

  Status parse_for(Block& out) {
    Statement statement = start(StatementKind::For);
    in_.advance();
    ++in_for_;
    statement.target = HONE_TRY(parse_target(false));
    if (!in_.take_word("in")) return in_.unexpected();
    statement.value = HONE_TRY(in_.parse_tuple(false));
    const bool soft = in_.set_soft(false);
    if (in_.take_word("if")) statement.condition = HONE_TRY(in_.parse_expression());
    statement.recursive = in_.take_word("recursive");
    HONE_TRY(expect(Token::Kind::BlockEnd));
    ++loops_;
    HONE_TRY(parse_block({"else", "endfor"}, "for", statement.offset, statement.body));
    --loops_;
    if (in_.is_word("else")) {
      HONE_TRY(finish_tag());
      // A jump here would belong to no loop, or to the outer one, depending on how Jinja compiles it.
      const int outer = std::exchange(loops_, 0);
      HONE_TRY(parse_block({"endfor"}, "for", statement.offset, statement.otherwise));
      loops_ = outer;
    }
    static_cast<void>(in_.set_soft(soft));
    --in_for_;
    out.push_back(std::move(statement));
    return finish_tag();
  }

  Status parse_set(Block& out) {
    Statement statement = start(StatementKind::Set);
    in_.advance();
    statement.target = HONE_TRY(parse_target(true));
    if (in_.take_operator("=")) {
      statement.value = HONE_TRY(in_.parse_tuple(true));
      out.push_back(std::move(statement));
      return expect(Token::Kind::BlockEnd);
    }
    statement.kind = StatementKind::SetBlock;
    const bool soft = in_.set_soft(false);
    if (in_.is_operator("|")) statement.value = HONE_TRY(in_.parse_block_filters());
    static_cast<void>(in_.set_soft(soft));
    HONE_TRY(expect(Token::Kind::BlockEnd));
    HONE_TRY(parse_body(statement, "set", "endset"));
    out.push_back(std::move(statement));
    return {};
  }

  Status parse_with(Block& out) {
    Statement statement = start(StatementKind::With);
    in_.advance();
    while (in_.now().kind != Token::Kind::BlockEnd) {
      if (!statement.bindings.empty()) HONE_TRY(in_.expect_operator(","));
      Target target = HONE_TRY(parse_target(false));
      HONE_TRY(in_.expect_operator("="));
      ExprPtr value = HONE_TRY(in_.parse_expression());
      statement.bindings.emplace_back(std::move(target), std::move(value));
    }
    in_.advance();
    HONE_TRY(parse_body(statement, "with", "endwith"));
    out.push_back(std::move(statement));
    return {};
  }

  // `(a, b=1)`
  Status parse_signature(Statement& statement) {
    HONE_TRY(in_.expect_operator("("));
    while (!in_.is_operator(")")) {
      if (!statement.parameters.empty()) HONE_TRY(in_.expect_operator(","));
      if (in_.now().kind != Token::Kind::Name) return in_.unexpected();
      const std::string name = in_.now().text;
      if (std::find(statement.parameters.begin(), statement.parameters.end(), name) !=
          statement.parameters.end()) {
        return source_.error(in_.now().offset, fmt::format("two parameters have the name '{}'", name));
      }
      in_.advance();
      statement.parameters.push_back(name);
      if (in_.take_operator("=")) {
        statement.defaults.push_back(HONE_TRY(in_.parse_expression()));
      } else if (!statement.defaults.empty()) {
        return source_.error(in_.now().offset, "non-default argument follows default argument");
      }
    }
    in_.advance();
    return {};
  }

  // Which of the special names the body uses, by the names met while it is parsed.
  Status parse_macro_body(Statement& statement, std::string_view opener, std::string_view end) {
    const ExpressionParser::SpecialNames before = in_.take_special_names();
    HONE_TRY(parse_body(statement, opener, end));
    const ExpressionParser::SpecialNames met = in_.take_special_names();
    const auto takes = [&](bool used, std::string_view name) {
      return used && std::find(statement.parameters.begin(), statement.parameters.end(), name) ==
                         statement.parameters.end();
    };
    statement.takes_caller = takes(met.caller, "caller");
    statement.takes_kwargs = takes(met.kwargs, "kwargs");
    statement.takes_varargs = takes(met.varargs, "varargs");
    in_.add_special_names(before);
    in_.add_special_names(met);
    return {};
  }

  Status parse_macro(Block& out) {
    Statement statement = start(StatementKind::Macro);
    in_.advance();
    if (in_.now().kind != Token::Kind::Name) return in_.unexpected();
    statement.text = in_.now().text;
    in_.advance();
    HONE_TRY(parse_signature(statement));
    HONE_TRY(expect(Token::Kind::BlockEnd));
    HONE_TRY(parse_macro_body(statement, "macro", "endmacro"));
    if (std::find(statement.parameters.begin(), statement.parameters.end(), "caller") !=
        statement.parameters.end()) {
      return source_.unsupported(statement.offset, "a macro with a parameter 'caller'");
    }
    out.push_back(std::move(statement));
    return {};
  }

  Status parse_call(Block& out) {
    Statement statement = start(StatementKind::CallBlock);
    statement.text = "caller";
    in_.advance();
    if (in_.is_operator("(")) HONE_TRY(parse_signature(statement));
    statement.value = HONE_TRY(in_.parse_expression());
    if (statement.value->kind != ExprKind::Call) return source_.error(statement.offset, "expected call");
    HONE_TRY(expect(Token::Kind::BlockEnd));
    HONE_TRY(parse_macro_body(statement, "call", "endcall"));
    out.push_back(std::move(statement));
    return {};
  }

  Status parse_filter(Block& out) {
    Statement statement = start(StatementKind::FilterBlock);
    in_.advance();
    statement.value = HONE_TRY(in_.parse_block_filters());
    HONE_TRY(expect(Token::Kind::BlockEnd));
    HONE_TRY(parse_body(statement, "filter", "endfilter"));
    out.push_back(std::move(statement));
    return {};
  }

  Status parse_generation(Block& out) {
    Statement statement = start(StatementKind::Scope);
    HONE_TRY(finish_tag());
    HONE_TRY(parse_body(statement, "generation", "endgeneration"));
    out.push_back(std::move(statement));
    return {};
  }

  Status parse_jump(Block& out) {
    const bool is_break = in_.is_word("break");
    Statement statement = start(is_break ? StatementKind::Break : StatementKind::Continue);
    if (loops_ == 0) return source_.error(statement.offset, "a break or continue stands in no loop");
    out.push_back(std::move(statement));
    return finish_tag();
  }

  const Source& source_;
  ExpressionParser in_;
  std::int32_t max_depth_;
  std::int32_t depth_ = 0;
  int loops_ = 0;   // that a jump could leave
  int in_for_ = 0;  // loops around
};

}  // namespace

Result<Template> parse(const Source& source, const std::vector<Token>& tokens, std::int32_t max_depth) {
  Template out;
  out.block = HONE_TRY(StatementParser(source, tokens, max_depth).run());
  analyse_scopes(out);
  return out;
}

}  // namespace hone::jinja
