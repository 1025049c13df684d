// Statements, names and scopes. Operators and lookups: jinja_operators.cc, jinja_lookup.cc.
#include "tokens/jinja_eval.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/utf8.h"

namespace hone::jinja {

Evaluator::~Evaluator() {
  for (const auto& space : namespaces_) space->items.clear();
  for (const auto& scope : scopes_) scope->variables.clear();
  for (const auto& scope : kept_) scope->variables.clear();
}

Status Evaluator::charge(std::uint32_t offset, std::uint64_t size) {
  steps_left_ -= 1 + static_cast<std::int64_t>(size / 16);
  if (steps_left_ < 0) {
    return source_.error(offset, fmt::format("the template takes more than {} steps", fuel_.steps));
  }
  if (live_bytes() - bytes_before_ > fuel_.memory_bytes) {
    return source_.error(offset,
                         fmt::format("the template's values take more than {} bytes", fuel_.memory_bytes));
  }
  return {};
}

Status Evaluator::check_size(std::uint32_t offset, std::uint64_t bytes) const {
  if (bytes <= static_cast<std::uint64_t>(fuel_.output_bytes)) return {};
  return source_.error(offset, "a value is too large");
}

Result<Value> Evaluator::bounded(std::uint32_t offset, Value value) const {
  if (value.depth() > fuel_.depth) {
    return source_.error(offset, fmt::format("a value is nested deeper than {}", fuel_.depth));
  }
  if (value.weight() > fuel_.output_bytes) return source_.error(offset, "a value is too large");
  return value;
}

Result<std::string> Evaluator::text_of(std::uint32_t offset, const Value& value) {
  HONE_TRY(charge_weight(offset, value));
  std::string out;
  if (append_text(out, value)) return out;
  if (value.as_big() != nullptr) {
    return source_.error(
        offset, fmt::format("Exceeds the limit ({} digits) for integer string conversion", kMostDigits));
  }
  return source_.unsupported(offset, fmt::format("printing a value of type {}", value.type_name()));
}

Status Evaluator::require_defined(std::uint32_t offset, const Value& value) const {
  if (const Undefined* undefined = value.as_undefined()) {
    return source_.error(offset, undefined->message ? undefined->message->text : "a value is undefined");
  }
  return {};
}

Result<std::string> Evaluator::render(const Template& tree) {
  enter_scope(nullptr, tree.hidden);
  HONE_TRY(run(tree.block));
  return std::move(out_);
}

Result<Evaluator::Flow> Evaluator::run(const Block& block) {
  ++depth_;
  for (const Statement& statement : block) {
    if (depth_ > 8 * fuel_.depth) return source_.error(statement.offset, "calls are nested too deeply");
    const Flow flow = HONE_TRY(run_statement(statement));
    if (static_cast<std::int64_t>(out_.size()) + captured_bytes_ > fuel_.output_bytes) {
      return source_.error(statement.offset,
                           fmt::format("the rendered text has more than {} bytes", fuel_.output_bytes));
    }
    if (flow == Flow::Normal) continue;
    --depth_;
    return flow;
  }
  --depth_;
  return Flow::Normal;
}

Result<Evaluator::Flow> Evaluator::run_statement(const Statement& statement) {
  HONE_TRY(charge(statement.offset, statement.text.size()));
  switch (statement.kind) {
    case StatementKind::Text:
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
    case StatementKind::SetBlock: {
      const Value text = HONE_TRY(capture_block(statement));
      HONE_TRY(assign(statement.target, text));
      break;
    }
    case StatementKind::Scope:
      HONE_TRY(run_scope(statement.body, statement.hidden));
      break;
    case StatementKind::With:
      HONE_TRY(run_with(statement));
      break;
    case StatementKind::Macro:
      HONE_TRY(run_macro(statement));
      break;
    case StatementKind::CallBlock:
      HONE_TRY(run_call_block(statement));
      break;
    case StatementKind::FilterBlock: {
      const Value value = HONE_TRY(capture_block(statement));
      // Jinja joins it with the text around it as it is.
      const std::string* text = value.as_string() != nullptr ? value.as_string() : value.as_markup();
      if (text == nullptr) {
        return error(statement.offset, fmt::format("expected str instance, {} found", value.type_name()));
      }
      out_ += *text;
      break;
    }
    case StatementKind::Break:
      return Flow::Break;
    case StatementKind::Continue:
      return Flow::Continue;
  }
  return Flow::Normal;
}

Status Evaluator::run_print(const Statement& statement) {
  const Value value = HONE_TRY(evaluate(*statement.value));
  out_ += HONE_TRY(text_of(statement.value->offset, value));
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
  const std::string* string = value.as_string();
  if (const Dict* dict = value.as_dict()) {
    items.reserve(dict->items.size());
    for (const auto& [key, entry] : dict->items) items.push_back(Value::string(key));
  } else if (string != nullptr) {
    for (std::string_view left = *string; !left.empty();) {
      const std::size_t length = utf8_step(left).length;
      HONE_TRY(charge(offset, 0));
      items.push_back(Value::string(std::string(left.substr(0, length))));
      left.remove_prefix(length);
    }
  } else if (Generator* generator = value.as_generator()) {
    items.assign(generator->items.begin() + static_cast<std::ptrdiff_t>(generator->at),
                 generator->items.end());
    generator->at = generator->items.size();
    if (generator->failure) return *std::exchange(generator->failure, std::nullopt);
  } else if (value.as_markup() != nullptr || value.as_loop() != nullptr) {
    return source_.unsupported(offset, fmt::format("iterating over a value of type {}", value.type_name()));
  } else if (!value.is_undefined()) {
    return source_.error(offset, fmt::format("'{}' object is not iterable", value.type_name()));
  }
  return make_list(Shape::List, std::move(items)).list_pointer();
}

Scope* Evaluator::enter_scope(Scope* parent, const Names& hidden) {
  scopes_.push_back(std::make_unique<Scope>());
  Scope* scope = scopes_.back().get();
  scope->parent = parent;
  for (const std::string& name : hidden) {
    scope->variables.push_back({name, Value::undefined(fmt::format("'{}' is undefined", name))});
  }
  return std::exchange(current_, scope);
}

void Evaluator::leave_scope(Scope* before) {
  if (scopes_.back()->kept) {
    scopes_.back()->footprint.grow(scopes_.back()->variables.capacity() * sizeof(Scope::Variable));
    kept_.push_back(std::move(scopes_.back()));
  }
  scopes_.pop_back();
  current_ = before;
}

// What is made here refers to the current scope and all around it.
void Evaluator::keep_scopes() {
  for (Scope* scope = current_; scope != nullptr && !scope->kept; scope = scope->parent) scope->kept = true;
}

void Evaluator::set_variable(std::string_view name, Value value) {
  for (auto& variable : current_->variables) {
    if (variable.name != name) continue;
    variable.value = std::move(value);
    return;
  }
  current_->variables.push_back({name, std::move(value)});
}

Result<const Value*> Evaluator::find_variable(std::uint32_t offset, std::string_view name) {
  for (const Scope* scope = current_; scope != nullptr; scope = scope->parent) {
    HONE_TRY(charge(offset, scope->variables.size()));
    for (const auto& variable : scope->variables) {
      if (variable.name == name) return &variable.value;
    }
  }
  HONE_TRY(charge(offset, context_.size()));
  for (const auto& [key, value] : context_) {
    if (key == name) return &value;
  }
  return static_cast<const Value*>(nullptr);
}

Status Evaluator::run_set(const Statement& statement) {
  const Value value = HONE_TRY(evaluate(*statement.value));
  return assign(statement.target, value);
}

Result<Value> Evaluator::capture_block(const Statement& statement) {
  Scope* before = enter_scope(current_, statement.hidden);
  const auto work = [&]() -> Status {
    HONE_TRY(run(statement.body));
    return {};
  };
  Value text = Value::string(HONE_TRY(capture(work)));
  if (statement.value) {
    std::swap(captured_, text);
    Value filtered = HONE_TRY(evaluate(*statement.value));
    captured_ = std::move(text);
    text = std::move(filtered);
  }
  leave_scope(before);
  return text;
}

Status Evaluator::run_scope(const Block& block, const Names& hidden) {
  Scope* before = enter_scope(current_, hidden);
  HONE_TRY(run(block));
  leave_scope(before);
  return {};
}

Status Evaluator::run_with(const Statement& statement) {
  std::vector<Value> values;
  values.reserve(statement.bindings.size());
  for (const auto& [target, value] : statement.bindings) values.push_back(HONE_TRY(evaluate(*value)));
  Scope* before = enter_scope(current_, statement.hidden);
  for (std::size_t i = 0; i < values.size(); ++i) {
    HONE_TRY(assign(statement.bindings[i].first, values[i]));
  }
  HONE_TRY(run(statement.body));
  leave_scope(before);
  return {};
}

Status Evaluator::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    HONE_TRY(require_defined(target.offset, value));
    const Value::ListPtr items = HONE_TRY(iterate(target.offset, value));
    if (items->items.size() != target.parts.size()) {
      return source_.error(target.offset,
                           fmt::format("{} names take {} values", target.parts.size(), items->items.size()));
    }
    for (std::size_t i = 0; i < items->items.size(); ++i) HONE_TRY(assign(target.parts[i], items->items[i]));
    return {};
  }
  if (target.attribute.empty()) {
    set_variable(target.name, value);
    return {};
  }
  const Value* object = HONE_TRY(find_variable(target.offset, target.name));
  Namespace* space = object == nullptr ? nullptr : object->as_namespace();
  if (space == nullptr)
    return source_.error(target.offset, "cannot assign attribute on non-namespace object");
  if (target.attribute.starts_with('_')) return source_.error(target.offset, private_name(target.attribute));
  HONE_TRY(charge(target.offset, space->items.size()));
  if (Value* old = space->find(target.attribute)) {
    *old = value;
  } else {
    space->add(target.attribute, value);
  }
  return {};
}

Value Evaluator::make_namespace(std::vector<std::pair<std::string, Value>> items) {
  namespaces_.push_back(std::make_shared<Namespace>(std::move(items)));
  return Value::name_space(namespaces_.back());
}

Result<Value> Evaluator::evaluate_name(const Expr& expr) {
  if (const Value* value = HONE_TRY(find_variable(expr.offset, expr.text))) return *value;
  constexpr std::array<std::pair<std::string_view, Function>, 7> kFunctions{{
      {"range", Function::Range},
      {"namespace", Function::Namespace},
      {"dict", Function::Dict},
      {"raise_exception", Function::RaiseException},
      {"joiner", Function::Joiner},
      {"cycler", Function::Cycler},
      {"strftime_now", Function::StrftimeNow},
  }};
  for (const auto& [name, function] : kFunctions) {
    if (name == expr.text) return Value::function(function);
  }
  return Value::undefined(fmt::format("'{}' is undefined", expr.text));
}

}  // namespace hone::jinja
