#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <map>

#include "graph/text.h"

namespace hone {
namespace {

constexpr int kMaxBodyDepth = 8;
constexpr ValueId kMaxValueNumber = 10'000'000;

// A cursor over the text; every read skips blanks and comments first.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  Error fail(std::string_view expected) const {
    std::size_t line = 1;
    std::size_t column = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    const std::string_view rest = text_.substr(std::min(at_, text_.size()));
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 fmt::format("IR text, line {} column {}", line, column),
                 "the text is not a graph",
                 std::string(expected),
                 rest.empty()
                     ? "the end of the text"
                     : fmt::format("'{}'", rest.substr(0, std::min<std::size_t>(16, rest.find('\n')))),
                 "the grammar stands in src/graph/text.h"};
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }
  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    // A word must end where the token ends.
    const std::size_t end = at_ + token.size();
    if (word_char(token.back()) && end < text_.size() && word_char(text_[end])) return false;
    at_ = end;
    return true;
  }
  Status need(std::string_view token) {
    if (!take(token)) return fail(fmt::format("'{}'", token));
    return {};
  }
  Result<std::string> word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && word_char(text_[at_])) ++at_;
    if (begin == at_) return fail("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  Result<std::string> string() {
    HONE_TRY(need("\""));
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'x' && at_ + 2 <= text_.size()) {
          unsigned code = 0;
          const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 2, code, 16);
          if (error != std::errc() || end != text_.data() + at_ + 2) return fail("two hexadecimal digits");
          at_ = static_cast<std::size_t>(end - text_.data());
          c = static_cast<char>(code);
        }
      }
      out += c;
    }
    if (at_ >= text_.size()) return fail("'\"'");
    ++at_;
    return out;
  }
  // Up to a ',' or one of `closers` outside parentheses: a dim.
  Result<Dim> dim(std::string_view closers) {
    skip();
    int depth = 0;
    std::size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      if (depth == 0 && (c == ',' || closers.find(c) != std::string_view::npos)) break;
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      ++end;
    }
    Result<Dim> parsed = Dim::parse(text_.substr(at_, end - at_));
    if (!parsed.ok()) return fail("a dim");
    at_ = end;
    return parsed;
  }
  // An integer or a real, as the token is spelled.
  Result<AttributeValue> number() {
    skip();
    std::size_t end = at_;
    while (end < text_.size() &&
           (word_char(text_[end]) || text_[end] == '-' || text_[end] == '+' || text_[end] == '.'))
      ++end;
    const std::string_view token = text_.substr(at_, end - at_);
    if (token.find_first_of(".en") == std::string_view::npos) {
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
      if (error != std::errc() || stop != token.data() + token.size()) return fail("a number");
      at_ = end;
      return AttributeValue(value);
    }
    double value = 0;
    const auto [stop, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error != std::errc() || stop != token.data() + token.size()) return fail("a number");
    at_ = end;
    return AttributeValue(value);
  }

 private:
  static bool word_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

class GraphParser {
 public:
  // `first_named`: one more than the largest number that a value of the text has for its name.
  GraphParser(Scanner& scan, std::size_t first_named) : scan_(scan), first_named_(first_named) {}

  // From the name to the closing brace.
  Result<Graph> parse(int depth) {
    if (depth > kMaxBodyDepth) return scan_.fail("at most 8 bodies inside each other");
    graph_.name = HONE_TRY(scan_.string());
    HONE_TRY(scan_.need("symbols"));
    HONE_TRY(scan_.need("("));
    while (!scan_.take(")")) {
      const std::string letter = HONE_TRY(scan_.word());
      if (letter.size() != 1) return scan_.fail("a one-letter symbol");
      graph_.symbols += letter;
      scan_.take(",");
    }
    HONE_TRY(scan_.need("{"));
    while (!scan_.take("}")) HONE_TRY(line(depth));
    return std::move(graph_);
  }

 private:
  Result<Type> type() {
    const std::string name = HONE_TRY(scan_.word());
    const std::optional<DType> dtype = dtype_from_name(name);
    if (!dtype) return scan_.fail(fmt::format("an element type, not '{}',", name));
    HONE_TRY(scan_.need("["));
    return Type{*dtype, HONE_TRY(dims())};
  }
  Result<std::vector<Dim>> dims() {
    std::vector<Dim> out;
    while (!scan_.take("]")) {
      out.push_back(HONE_TRY(scan_.dim("]")));
      if (!scan_.take(",")) {
        HONE_TRY(scan_.need("]"));
        break;
      }
    }
    return out;
  }
  // %12 becomes value 12, so that a dump reads back with the ids it was printed with; other names come after
  // them.
  Result<ValueId> define(std::string name, Type value_type) {
    ValueId id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    const bool numbered = error == std::errc() && end == name.data() + name.size();
    if (numbered && static_cast<std::size_t>(id) >= graph_.values.size()) {
      if (id > kMaxValueNumber) return scan_.fail("value numbers up to 10 million");
      graph_.values.resize(static_cast<std::size_t>(id) + 1);
    }
    if (numbered) {
      graph_.values[static_cast<std::size_t>(id)].type = std::move(value_type);
    } else {
      if (graph_.values.size() < first_named_) graph_.values.resize(first_named_);
      id = graph_.add_value(std::move(value_type), name);
    }
    if (!names_.emplace(std::move(name), id).second) return scan_.fail("a value name that is not taken yet");
    return id;
  }
  Result<std::string> value_name() {
    HONE_TRY(scan_.need("%"));
    return scan_.word();
  }
  Result<ValueId> value() {
    const std::string name = HONE_TRY(value_name());
    const auto found = names_.find(name);
    if (found == names_.end()) return scan_.fail(fmt::format("a value that stands above, not %{},", name));
    return found->second;
  }
  Status input(InputKind kind) {
    std::string printed = HONE_TRY(value_name());
    std::string name = HONE_TRY(scan_.string());
    HONE_TRY(scan_.need(":"));
    Type value_type = HONE_TRY(type());
    const ValueId id = HONE_TRY(define(std::move(printed), std::move(value_type)));
    graph_.inputs.push_back({std::move(name), kind, id});
    return {};
  }
  Status line(int depth) {
    if (scan_.take("input")) return input(InputKind::Input);
    if (scan_.take("weight")) return input(InputKind::Weight);
    if (scan_.take("state")) return input(InputKind::State);
    if (scan_.take("output")) return output(graph_.outputs);
    if (scan_.take("update")) return output(graph_.state_updates);
    return parse_node(depth);
  }
  Status output(std::vector<GraphOutput>& list) {
    std::string name = HONE_TRY(scan_.string());
    list.push_back({std::move(name), HONE_TRY(value())});
    return {};
  }
  Status parse_node(int depth) {
    Node node;
    std::vector<std::string> printed;
    std::vector<Type> types;
    do {
      printed.push_back(HONE_TRY(value_name()));
      HONE_TRY(scan_.need(":"));
      types.push_back(HONE_TRY(type()));
    } while (scan_.take(","));
    HONE_TRY(scan_.need("="));
    node.op = HONE_TRY(scan_.word());
    HONE_TRY(scan_.need("("));
    while (!scan_.take(")")) {
      node.inputs.push_back(HONE_TRY(value()));
      scan_.take(",");
    }
    if (scan_.take("{")) HONE_TRY(attributes(node));
    if (scan_.take("@")) node.module = HONE_TRY(scan_.string());
    if (scan_.take("body")) {
      GraphParser inner(scan_, first_named_);
      node.body = std::make_shared<const Graph>(HONE_TRY(inner.parse(depth + 1)));
    }
    for (std::size_t i = 0; i < printed.size(); ++i) {
      node.outputs.push_back(HONE_TRY(define(std::move(printed[i]), std::move(types[i]))));
    }
    graph_.nodes.push_back(std::move(node));
    return {};
  }
  Status attributes(Node& node) {
    while (!scan_.take("}")) {
      std::string name = HONE_TRY(scan_.word());
      HONE_TRY(scan_.need("="));
      node.attributes.set(std::move(name), HONE_TRY(attribute_value()));
      scan_.take(",");
    }
    return {};
  }
  Result<AttributeValue> attribute_value() {
    if (scan_.take("dims[")) return AttributeValue(HONE_TRY(dims()));
    if (scan_.take("ints[")) return AttributeValue(HONE_TRY(numbers<std::int64_t>()));
    if (scan_.take("reals[")) return AttributeValue(HONE_TRY(numbers<double>()));
    Scanner before = scan_;
    if (scan_.take("\"")) {
      scan_ = before;
      return AttributeValue(HONE_TRY(scan_.string()));
    }
    return scan_.number();
  }
  template <class T>
  Result<std::vector<T>> numbers() {
    std::vector<T> out;
    while (!scan_.take("]")) {
      const AttributeValue item = HONE_TRY(scan_.number());
      const T* number = std::get_if<T>(&item);
      if (number == nullptr) return scan_.fail("a number of the list's kind");
      out.push_back(*number);
      scan_.take(",");
    }
    return out;
  }

  Scanner& scan_;
  std::size_t first_named_;
  Graph graph_;
  std::map<std::string, ValueId, std::less<>> names_;
};

}  // namespace

Result<Graph> parse_graph(std::string_view text) {
  Scanner scan(text);
  std::size_t first_named = 0;
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    ValueId number = 0;
    const auto [end, error] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    const bool whole =
        end == text.data() + text.size() || std::isalpha(static_cast<unsigned char>(*end)) == 0;
    if (error == std::errc() && whole && number >= 0 && number <= kMaxValueNumber) {
      first_named = std::max(first_named, static_cast<std::size_t>(number) + 1);
    }
  }
  HONE_TRY(scan.need("graph"));
  GraphParser parser(scan, first_named);
  Graph graph = HONE_TRY(parser.parse(0));
  if (!scan.at_end()) return scan.fail("the end of the text");
  return graph;
}

}  // namespace hone
