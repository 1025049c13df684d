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
  Integer,  // text: the decimal digits if they are beyond 64 bits
  Float,
  String,
  Name,
  List,      // children
  Tuple,     // children
  Dict,      // children: key, value, key, value, ...
  Negate,    // -a
  Positive,  // +a
  Not,
  And,         // a, b
  Or,          // a, b
  Binary,      // a, b; text is the operator
  Concat,      // ~ of all children
  Compare,     // a, b, c, ...; words are the operators between them, "not in" is one
  InlineIf,    // condition, then, else (null: undefined)
  Attribute,   // a.text
  Item,        // a[b]
  Slice,       // a[b:c:d]; b, c, d may be null
  Call,        // callee, arguments
  Filter,      // input, arguments; text is the name
  Test,        // input, arguments; text is the name; integer is 1 for `is not`
  Star,        // *a, among arguments
  DoubleStar,  // **a, among arguments
  Captured,    // the text of the block that a filter stands on
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

enum class StatementKind : std::uint8_t {
  Text,
  Print,
  If,
  For,
  Set,
  SetBlock,
  Scope,
  With,
  Macro,
  CallBlock,
  FilterBlock,
  Break,
  Continue,
};

struct Statement;
using Block = std::vector<Statement>;

// Where a value goes: `name`, `name.attribute` of a namespace, or parts that it is taken apart into.
struct Target {
  std::uint32_t offset = 0;
  std::string name;
  std::string attribute;
  bool is_tuple = false;
  std::vector<Target> parts;
};

// Names that are undefined when a scope is entered, whatever stands outside of it: see jinja_scopes.h.
using Names = std::vector<std::string>;

struct Statement {
  StatementKind kind = StatementKind::Text;
  std::uint32_t offset = 0;
  std::string text;  // Text; Macro: its name
  // Print, Set; For: what is iterated; CallBlock: the call; SetBlock, FilterBlock: filters of the body's
  // text, or null
  ExprPtr value;
  ExprPtr condition;                                 // For: its `if`, may be null
  Target target;                                     // For, Set, SetBlock
  std::vector<std::pair<Target, ExprPtr>> bindings;  // With
  std::vector<std::pair<ExprPtr, Block>> branches;   // If
  Block body;                                        // all with a body; If: else
  Block otherwise;                                   // For: else
  bool recursive = false;                            // For
  Names parameters;                                  // Macro, CallBlock
  std::vector<ExprPtr> defaults;                     // of the last parameters
  bool takes_caller = false;                         // Macro, CallBlock: the body has these names
  bool takes_kwargs = false;
  bool takes_varargs = false;
  Names hidden;            // of the scope of `body`
  Names hidden_otherwise;  // of the scope of `otherwise`
};

struct Template {
  Block block;
  Names hidden;
};

}  // namespace hone::jinja
