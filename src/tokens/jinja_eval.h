// Walks the tree of a template.
#pragma once

#include <cstdint>
#include <memory>
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

// The variables of a loop body, macro or block. `parent` is the scope around it in the template, wherever it
// is called from.
struct Scope {
  struct Variable {
    std::string_view name;  // points into the tree
    Value value;
  };
  Scope* parent = nullptr;
  std::vector<Variable> variables;
  bool kept = false;  // a macro or recursive loop needs it after it is left
  Footprint footprint{256};
};

class Evaluator {
 public:
  Evaluator(const Source& source, const Fuel& fuel, std::vector<std::pair<std::string, Value>> context)
      : source_(source),
        fuel_(fuel),
        context_(std::move(context)),
        steps_left_(fuel.steps),
        bytes_before_(live_bytes()) {}
  // Values may hold each other through namespaces and macros' scopes: they are taken apart one by one.
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Renders the whole template.
  Result<std::string> render(const Template& tree);

  // For the built-in functions: errors at `offset`, fuel, and the checks that keep values bounded.
  Error error(std::uint32_t offset, std::string message) const {
    return source_.error(offset, std::move(message));
  }
  Error unsupported(std::uint32_t offset, std::string_view what) const {
    return source_.unsupported(offset, what);
  }
  const Fuel& fuel() const { return fuel_; }
  // One step and one more per 16 of `size`, bytes or elements. An error too if values take too much memory.
  Status charge(std::uint32_t offset, std::uint64_t size);
  Status charge_weight(std::uint32_t offset, const Value& value) {
    return charge(offset, static_cast<std::uint64_t>(value.weight()));
  }
  // Error if `bytes` more would make a value too large; for before it is made.
  Status check_size(std::uint32_t offset, std::uint64_t bytes) const;
  // `value` if its nesting and weight are within the fuel.
  Result<Value> bounded(std::uint32_t offset, Value value) const;
  // str(value).
  Result<std::string> text_of(std::uint32_t offset, const Value& value);
  // What `for` would see: elements, keys, characters, nothing for an undefined value. Empties a generator.
  Result<Value::ListPtr> iterate(std::uint32_t offset, const Value& value);
  // Error if `value` is undefined.
  Status require_defined(std::uint32_t offset, const Value& value) const;
  // Python's `item in container`.
  Result<bool> contains(std::uint32_t offset, const Value& container, const Value& item);
  Result<bool> compare(std::uint32_t offset, std::string_view op, const Value& a, const Value& b);
  Result<Value> binary(std::uint32_t offset, std::string_view op, const Value& a, const Value& b);
  // `object.name` and `object[index]`.
  Result<Value> attribute(std::uint32_t offset, const Value& object, std::string_view name);
  Result<Value> item(std::uint32_t offset, const Value& object, const Value& index);
  Result<Value> call(std::uint32_t offset, const Value& callee, const Arguments& arguments);
  // A namespace with these variables.
  Value make_namespace(std::vector<std::pair<std::string, Value>> items);

 private:
  friend class ItemSource;
  enum class Flow : std::uint8_t { Normal, Break, Continue };

  Result<Flow> run(const Block& block);
  Result<Flow> run_statement(const Statement& statement);
  Status run_print(const Statement& statement);
  Result<Flow> run_if(const Statement& statement);
  Status run_set(const Statement& statement);
  Status run_with(const Statement& statement);
  Status run_filter_block(const Statement& statement);
  Status run_call_block(const Statement& statement);
  Status run_macro(const Statement& statement);
  // A body in a scope of its own; then its text through the filters of `statement.value`.
  Result<Value> capture_block(const Statement& statement);
  Status run_scope(const Block& block, const Names& hidden);
  Status assign(const Target& target, const Value& value);

  // jinja_loop.cc
  Status run_for(const Statement& statement);
  Status run_loop(const Statement& statement, const Value& iterable, std::int32_t depth);
  Result<Value> call_loop(std::uint32_t offset, const Loop& loop, const Arguments& arguments);
  Result<bool> advance(Loop& loop);
  Result<bool> peek(Loop& loop);
  Result<Value> loop_attribute(std::uint32_t offset, const Value& value, std::string_view name);

  // jinja_macro.cc
  Result<Value> call_macro(std::uint32_t offset, const Macro& macro, const Arguments& arguments);
  Status bind_parameters(std::uint32_t offset, const Statement& statement, const Arguments& arguments);

  // The text that `work` prints.
  template <class Work>
  Result<std::string> capture(Work work) {
    std::string outer = std::exchange(out_, {});
    captured_bytes_ += static_cast<std::int64_t>(outer.size());
    // A macro or a loop within itself takes the native stack of some levels more than it counts: without
    // optimisation and under AddressSanitizer half a MiB for every thirty.
    constexpr std::int32_t kLevels = 4;
    depth_ += kLevels;
    HONE_TRY(work());
    depth_ -= kLevels;
    captured_bytes_ -= static_cast<std::int64_t>(outer.size());
    return std::exchange(out_, std::move(outer));
  }

  // Leaving gives the scope back that was current before.
  Scope* enter_scope(Scope* parent, const Names& hidden);
  void leave_scope(Scope* before);
  void keep_scopes();
  void set_variable(std::string_view name, Value value);
  Result<const Value*> find_variable(std::uint32_t offset, std::string_view name);

  Result<Value> evaluate(const Expr& expr);
  Result<Value> evaluate_deeper(const Expr& expr);
  Result<Value> evaluate_literal(const Expr& expr);
  Result<Value> evaluate_name(const Expr& expr);
  Result<Value> evaluate_sequence(const Expr& expr);
  Result<Value> evaluate_dict(const Expr& expr);
  Result<Value> evaluate_sign(const Expr& expr);
  Result<Value> evaluate_concat(const Expr& expr);
  Result<Value> evaluate_compare(const Expr& expr);
  Result<Value> evaluate_slice(const Expr& expr);
  Result<Value> evaluate_call(const Expr& expr, std::pair<std::string, Value>* caller);
  // The children of `expr` from the second on.
  Result<Arguments> evaluate_arguments(const Expr& expr);

  const Source& source_;
  Fuel fuel_;
  std::vector<std::pair<std::string, Value>> context_;
  std::vector<std::unique_ptr<Scope>> scopes_;  // entered and not left
  std::vector<std::unique_ptr<Scope>> kept_;    // left, but needed
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  Scope* current_ = nullptr;
  std::string out_;
  std::int64_t captured_bytes_ = 0;  // printed around the blocks that are being captured
  Value captured_;                   // what ExprKind::Captured stands for
  std::int64_t steps_left_;
  std::int64_t bytes_before_;
  std::int32_t depth_ = 0;  // nesting of evaluate and run, that is, of the native stack
};

}  // namespace hone::jinja
