#include "tokens/jinja_parser.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "tokens/jinja_expression_parser.h"

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
        return source_.error(offset, fmt::format("the block '{}' has no end", opener));
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
    if (tag.text == "generation") return parse_generation(out);
    if (tag.text == "break" || tag.text == "continue") return parse_jump(out);
    constexpr std::array<std::string_view, 11> kKnown{"macro", "call",    "filter",    "with",
                                                      "block", "extends", "include",   "import",
                                                      "from",  "trans",   "autoescape"};
    if (std::find(kKnown.begin(), kKnown.end(), tag.text) != kKnown.end()) {
      return source_.unsupported(tag.offset, fmt::format("tag '{}'", tag.text));
    }
    return source_.error(tag.offset, fmt::format("unknown tag '{}'", tag.text));
  }

  Status parse_if(Block& out) {
    Statement statement = start(StatementKind::If);
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
    out.push_back(std::move(statement));
    return finish_tag();
  }

  // `a`, `a, b`, `(a, b)`, and where `attributes`: `a.b` alone.
  Status parse_targets(Statement& statement, bool attributes) {
    const bool bracket = in_.take_operator("(");
    statement.unpack = bracket;
    while (true) {
      const Token& name = in_.now();
      if (name.kind != Token::Kind::Name) return in_.unexpected();
      constexpr std::array<std::string_view, 10> kReserved{"true", "false", "none", "True", "False",
                                                           "None", "and",   "or",   "not",  "loop"};
      if (std::find(kReserved.begin(), kReserved.end(), name.text) != kReserved.end()) {
        return source_.error(name.offset, fmt::format("nothing can be assigned to '{}'", name.text));
      }
      Target target{name.text, {}};
      in_.advance();
      if (attributes && in_.take_operator(".")) {
        if (in_.now().kind != Token::Kind::Name) return in_.unexpected();
        target.attribute = in_.now().text;
        if (target.attribute.starts_with('_')) {
          return source_.error(in_.now().offset, "a namespace attribute begins with '_'");
        }
        in_.advance();
      }
      statement.targets.push_back(std::move(target));
      if (!in_.take_operator(",")) break;
      statement.unpack = true;
      if (in_.is_operator(")") || in_.is_word("in") || in_.is_operator("=")) break;
    }
    if (bracket) HONE_TRY(in_.expect_operator(")"));
    if (in_.is_operator(",") || (bracket && statement.targets.size() == 1)) {
      return source_.unsupported(statement.offset, "an assignment to nested names");
    }
    return {};
  }

  Status parse_for(Block& out) {
    Statement statement = start(StatementKind::For);
    in_.advance();
    HONE_TRY(parse_targets(statement, false));
    if (!in_.take_word("in")) return in_.unexpected();
    statement.value = HONE_TRY(in_.parse_tuple(false));
    if (in_.take_word("if")) statement.condition = HONE_TRY(in_.parse_expression());
    if (in_.is_word("recursive")) return source_.unsupported(in_.now().offset, "a recursive loop");
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
    out.push_back(std::move(statement));
    return finish_tag();
  }

  Status parse_set(Block& out) {
    Statement statement = start(StatementKind::Set);
    in_.advance();
    HONE_TRY(parse_targets(statement, true));
    if (in_.take_operator("=")) {
      statement.value = HONE_TRY(in_.parse_tuple(true));
      out.push_back(std::move(statement));
      return expect(Token::Kind::BlockEnd);
    }
    if (in_.is_operator("|")) return source_.unsupported(in_.now().offset, "a set block with a filter");
    if (statement.unpack) return in_.unexpected();
    statement.kind = StatementKind::SetBlock;
    HONE_TRY(expect(Token::Kind::BlockEnd));
    const int outer = std::exchange(loops_, 0);
    HONE_TRY(parse_block({"endset"}, "set", statement.offset, statement.body));
    loops_ = outer;
    out.push_back(std::move(statement));
    return finish_tag();
  }

  Status parse_generation(Block& out) {
    Statement statement = start(StatementKind::Scope);
    HONE_TRY(finish_tag());
    const int outer = std::exchange(loops_, 0);
    HONE_TRY(parse_block({"endgeneration"}, "generation", statement.offset, statement.body));
    loops_ = outer;
    out.push_back(std::move(statement));
    return finish_tag();
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
  int loops_ = 0;  // that a jump could leave
};

}  // namespace

Result<Block> parse(const Source& source, const std::vector<Token>& tokens, std::int32_t max_depth) {
  return StatementParser(source, tokens, max_depth).run();
}

}  // namespace hone::jinja
