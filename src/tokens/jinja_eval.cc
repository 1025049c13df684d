// Statements, names and scopes. Operators and lookups: jinja_operators.cc.
#include "tokens/jinja_eval.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"

namespace hone::jinja {

Status Evaluator::charge(std::uint32_t offset, std::uint64_t size) {
  steps_left_ -= 1 + static_cast<std::int64_t>(size / 16);
  if (steps_left_ >= 0) return {};
  return source_.error(offset, fmt::format("the template takes more than {} steps", fuel_.steps));
}

Result<Value> Evaluator::bounded(std::uint32_t offset, Value value) const {
  if (value.depth() > fuel_.depth) {
    return source_.error(offset, fmt::format("a value is nested deeper than {}", fuel_.depth));
  }
  if (value.weight() > 4 * fuel_.output_bytes) return source_.error(offset, "a value is too large");
  return value;
}

Result<std::string> Evaluator::text_of(std::uint32_t offset, const Value& value) {
  HONE_TRY(charge_weight(offset, value));
  std::string out;
  if (!append_text(out, value)) {
    return source_.unsupported(offset, fmt::format("printing a value of type {}", value.type_name()));
  }
  return out;
}

Status Evaluator::require_defined(std::uint32_t offset, const Value& value) const {
  if (const Undefined* undefined = value.as_undefined()) {
    return source_.error(offset, undefined->message ? *undefined->message : "a value is undefined");
  }
  return {};
}

Result<std::string> Evaluator::render(const Block& block) {
  HONE_TRY(run(block));
  return std::move(out_);
}

Result<Evaluator::Flow> Evaluator::run(const Block& block) {
  for (const Statement& statement : block) {
    const Flow flow = HONE_TRY(run_statement(statement));
    if (flow != Flow::Normal) return flow;
    if (static_cast<std::int64_t>(out_.size()) > fuel_.output_bytes) {
      return source_.error(statement.offset,
                           fmt::format("the rendered text has more than {} bytes", fuel_.output_bytes));
    }
  }
  return Flow::Normal;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Statement& statement) {
  HONE_TRY(charge(statement.offset, 0));
  switch (statement.kind) {
    case StatementKind::Text:
      HONE_TRY(charge(statement.offset, statement.text.size()));
      out_ += statement.text;
      break;
    case StatementKind::Print:
      HONE_TRY(run_print(statement));
      break;
    case StatementKind::If:
      return run_if(statement);
    case StatementKind::For:
      HONE_TRY(run_for(statement));
      break;
    case StatementKind::Set:
      HONE_TRY(run_set(statement));
      break;
    case StatementKind::SetBlock:
      HONE_TRY(run_set_block(statement));
      break;
    case StatementKind::Scope:
      HONE_TRY(run_scope(statement.body));
      break;
    case StatementKind::Break:
      return Flow::Break;
    case StatementKind::Continue:
      return Flow::Continue;
  }
  return Flow::Normal;
}

Status Evaluator::run_print(const Statement& statement) {
  const Value value = HONE_TRY(evaluate(*statement.value));
  out_ += HONE_TRY(text_of(statement.offset, value));
  return {};
}

Result<Evaluator::Flow> Evaluator::run_if(const Statement& statement) {
  for (const auto& [condition, block] : statement.branches) {
    const Value value = HONE_TRY(evaluate(*condition));
    if (value.truth()) return run(block);
  }
  return run(statement.body);
}

Result<Value::ListPtr> Evaluator::iterate(std::uint32_t offset, const Value& value) {
  HONE_TRY(charge(offset, 16 * static_cast<std::uint64_t>(value.size())));
  if (auto list = value.list_pointer()) return list;
  std::vector<Value> items;
  if (const Dict* dict = value.as_dict()) {
    for (const auto& [key, item] : dict->items) items.push_back(Value::string(key));
  } else if (const auto* string = value.as_string()) {
    for (const std::string_view c : characters(*string)) items.push_back(Value::string(std::string(c)));
  } else if (!value.is_undefined()) {
    return source_.error(offset, fmt::format("'{}' object is not iterable", value.type_name()));
  }
  return make_list(Shape::List, std::move(items)).list_pointer();
}

std::size_t Evaluator::enter_frame() {
  return std::exchange(frame_, variables_.size());
}

void Evaluator::leave_frame(std::size_t outer) {
  variables_.erase(variables_.begin() + static_cast<std::ptrdiff_t>(frame_), variables_.end());
  frame_ = outer;
}

void Evaluator::set_variable(std::string_view name, Value value) {
  for (std::size_t i = frame_; i < variables_.size(); ++i) {
    if (variables_[i].name != name) continue;
    variables_[i].value = std::move(value);
    return;
  }
  variables_.push_back({name, std::move(value)});
}

Value* Evaluator::find_variable(std::string_view name) {
  for (std::size_t i = variables_.size(); i-- > 0;) {
    if (variables_[i].name == name) return &variables_[i].value;
  }
  for (auto& [key, value] : context_) {
    if (key == name) return &value;
  }
  return nullptr;
}

// The items for which the condition of a `for ... if` holds.
Result<Value::ListPtr> Evaluator::filter_items(const Statement& statement, Value::ListPtr items) {
  if (!statement.condition) return items;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    const std::size_t outer = enter_frame();
    HONE_TRY(assign(statement, item));
    const Value holds = HONE_TRY(evaluate(*statement.condition));
    leave_frame(outer);
    if (holds.truth()) kept.push_back(item);
  }
  return make_list(Shape::List, std::move(kept)).list_pointer();
}

Status Evaluator::run_for(const Statement& statement) {
  const Value value = HONE_TRY(evaluate(*statement.value));
  Value::ListPtr all = HONE_TRY(iterate(statement.offset, value));
  const Value::ListPtr items = HONE_TRY(filter_items(statement, std::move(all)));
  if (items->items.empty()) return run_scope(statement.otherwise);
  const auto loop = std::make_shared<Loop>(Loop{items, 0});
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    HONE_TRY(charge(statement.offset, 0));
    loop->index = i;
    // A variable set in the body lasts for one round.
    const std::size_t outer = enter_frame();
    set_variable("loop", Value::loop(loop));
    HONE_TRY(assign(statement, items->items[i]));
    const Flow flow = HONE_TRY(run(statement.body));
    leave_frame(outer);
    if (flow == Flow::Break) break;
  }
  return {};
}

Status Evaluator::run_set(const Statement& statement) {
  const Value value = HONE_TRY(evaluate(*statement.value));
  return assign(statement, value);
}

Status Evaluator::run_set_block(const Statement& statement) {
  std::string outer_text = std::exchange(out_, {});
  HONE_TRY(run_scope(statement.body));
  std::string text = std::exchange(out_, std::move(outer_text));
  return assign(statement, Value::string(std::move(text)));
}

Status Evaluator::run_scope(const Block& block) {
  const std::size_t outer = enter_frame();
  HONE_TRY(run(block));
  leave_frame(outer);
  return {};
}

Status Evaluator::assign(const Statement& statement, const Value& value) {
  if (!statement.unpack) return assign_target(statement.offset, statement.targets[0], value);
  HONE_TRY(require_defined(statement.offset, value));
  const Value::ListPtr items = HONE_TRY(iterate(statement.offset, value));
  if (items->items.size() != statement.targets.size()) {
    return source_.error(statement.offset, fmt::format("{} names take {} values", statement.targets.size(),
                                                       items->items.size()));
  }
  for (std::size_t i = 0; i < statement.targets.size(); ++i) {
    HONE_TRY(assign_target(statement.offset, statement.targets[i], items->items[i]));
  }
  return {};
}

Status Evaluator::assign_target(std::uint32_t offset, const Target& target, Value value) {
  if (target.attribute.empty()) {
    set_variable(target.name, std::move(value));
    return {};
  }
  const Value* object = find_variable(target.name);
  Namespace* space = object == nullptr ? nullptr : object->mutable_namespace();
  if (space == nullptr) return source_.error(offset, "cannot assign attribute on non-namespace object");
  if (value.holds_objects()) {
    return source_.unsupported(offset, "a namespace that holds a namespace, loop or function");
  }
  HONE_TRY(charge(offset, space->items.size()));
  for (auto& [name, old] : space->items) {
    if (name != target.attribute) continue;
    old = std::move(value);
    return {};
  }
  space->items.emplace_back(target.attribute, std::move(value));
  return {};
}

Result<Value> Evaluator::evaluate_name(const Expr& expr) {
  HONE_TRY(charge(expr.offset, variables_.size() + context_.size()));
  if (const Value* value = find_variable(expr.text)) return *value;
  constexpr std::array<std::pair<std::string_view, Function>, 4> kFunctions{{
      {"range", Function::Range},
      {"namespace", Function::Namespace},
      {"dict", Function::Dict},
      {"raise_exception", Function::RaiseException},
  }};
  for (const auto& [name, function] : kFunctions) {
    if (name == expr.text) return Value::function(function);
  }
  return Value::undefined(fmt::format("'{}' is undefined", expr.text));
}

}  // namespace hone::jinja
