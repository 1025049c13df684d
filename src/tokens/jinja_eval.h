// Walks the tree of a template.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokens/jinja.h"
#include "tokens/jinja_ast.h"
#include "tokens/jinja_source.h"
#include "tokens/jinja_value.h"

namespace hone::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Evaluator {
 public:
  Evaluator(const Source& source, const Fuel& fuel, std::vector<std::pair<std::string, Value>> context)
      : source_(source), fuel_(fuel), context_(std::move(context)), steps_left_(fuel.steps) {}

  // Renders the whole template.
  Result<std::string> render(const Block& block);

  // For the built-in functions: errors at `offset`, fuel, and the checks that keep values bounded.
  Error error(std::uint32_t offset, std::string message) const {
    return source_.error(offset, std::move(message));
  }
  Error unsupported(std::uint32_t offset, std::string_view what) const {
    return source_.unsupported(offset, what);
  }
  // One step and one more per 16 of `size`, bytes or elements.
  Status charge(std::uint32_t offset, std::uint64_t size);
  Status charge_weight(std::uint32_t offset, const Value& value) {
    return charge(offset, static_cast<std::uint64_t>(value.weight()));
  }
  // `value` if its nesting and weight are within the fuel.
  Result<Value> bounded(std::uint32_t offset, Value value) const;
  // str(value).
  Result<std::string> text_of(std::uint32_t offset, const Value& value);
  // What `for` would see: elements, keys, characters, nothing for an undefined value.
  Result<Value::ListPtr> iterate(std::uint32_t offset, const Value& value);
  // Error if `value` is undefined.
  Status require_defined(std::uint32_t offset, const Value& value) const;
  // Python's `item in container`.
  Result<bool> contains(std::uint32_t offset, const Value& container, const Value& item);
  Result<bool> compare(std::uint32_t offset, std::string_view op, const Value& a, const Value& b);
  Result<Value> binary(std::uint32_t offset, std::string_view op, const Value& a, const Value& b);

 private:
  enum class Flow : std::uint8_t { Normal, Break, Continue };
  struct Variable {
    std::string_view name;  // points into the tree
    Value value;
  };

  Result<Flow> run(const Block& block);
  Result<Flow> run_statement(const Statement& statement);
  Status run_print(const Statement& statement);
  Result<Flow> run_if(const Statement& statement);
  Status run_for(const Statement& statement);
  Result<Value::ListPtr> filter_items(const Statement& statement, Value::ListPtr items);
  Status run_set(const Statement& statement);
  Status run_set_block(const Statement& statement);
  Status run_scope(const Block& block);
  Status assign(const Statement& statement, const Value& value);
  Status assign_target(std::uint32_t offset, const Target& target, Value value);

  // A frame holds the variables set inside of a loop body or block; leaving it drops them.
  std::size_t enter_frame();
  void leave_frame(std::size_t outer);
  void set_variable(std::string_view name, Value value);
  Value* find_variable(std::string_view name);

  Result<Value> evaluate(const Expr& expr);
  Result<Value> evaluate_name(const Expr& expr);
  Result<Value> evaluate_sequence(const Expr& expr);
  Result<Value> evaluate_dict(const Expr& expr);
  Result<Value> evaluate_sign(const Expr& expr);
  Result<Value> evaluate_concat(const Expr& expr);
  Result<Value> evaluate_compare(const Expr& expr);
  Result<Value> evaluate_attribute(const Expr& expr);
  Result<Value> evaluate_item(const Expr& expr);
  Result<Value> evaluate_slice(const Expr& expr);
  Result<Value> evaluate_call(const Expr& expr);
  // The children of `expr` from the second on.
  Result<Arguments> evaluate_arguments(const Expr& expr);

  const Source& source_;
  Fuel fuel_;
  std::vector<std::pair<std::string, Value>> context_;
  std::vector<Variable> variables_;
  std::size_t frame_ = 0;  // where the innermost frame begins
  std::string out_;
  std::int64_t steps_left_;
};

}  // namespace hone::jinja
