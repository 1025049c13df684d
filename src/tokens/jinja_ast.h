// The parsed template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hone::jinja {

enum class ExprKind : std::uint8_t {
  None,
  Boolean,  // integer is 0 or 1
  Integer,
  Float,
  String,
  Name,
  List,      // children
  Tuple,     // children
  Dict,      // children: key, value, key, value, ...
  Negate,    // -a
  Positive,  // +a
  Not,
  And,        // a, b
  Or,         // a, b
  Binary,     // a, b; text is the operator
  Concat,     // ~ of all children
  Compare,    // a, b, c, ...; words are the operators between them, "not in" is one
  InlineIf,   // condition, then, else (null: undefined)
  Attribute,  // a.text
  Item,       // a[b]
  Slice,      // a[b:c:d]; b, c, d may be null
  Call,       // callee, arguments
  Filter,     // input, arguments; text is the name
  Test,       // input, arguments; text is the name; integer is 1 for `is not`
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Expr {
  ExprKind kind = ExprKind::None;
  std::uint32_t offset = 0;
  std::int32_t height = 1;  // 1 + that of the highest child: bounds the recursion of whoever walks the tree
  std::int64_t integer = 0;
  double real = 0.0;
  std::string text;
  std::vector<ExprPtr> children;
  // Compare: operators. Call, Filter, Test: names of the last words.size() children, which are keyword
  // arguments.
  std::vector<std::string> words;
};

enum class StatementKind : std::uint8_t { Text, Print, If, For, Set, SetBlock, Scope, Break, Continue };

struct Statement;
using Block = std::vector<Statement>;

// Where a value goes: `name`, or `name.attribute` of a namespace.
struct Target {
  std::string name;
  std::string attribute;
};

struct Statement {
  StatementKind kind = StatementKind::Text;
  std::uint32_t offset = 0;
  std::string text;                                 // Text
  ExprPtr value;                                    // Print, Set; For: what is iterated
  ExprPtr condition;                                // For: its `if`, may be null
  std::vector<Target> targets;                      // For, Set, SetBlock
  bool unpack = false;                              // For, Set: the value is taken apart, even for one target
  std::vector<std::pair<ExprPtr, Block>> branches;  // If
  Block body;                                       // For, SetBlock, Scope; If: else
  Block otherwise;                                  // For: else
};

}  // namespace hone::jinja
