// Macros and call blocks, by the rules of jinja2.runtime.Macro.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_eval.h"

namespace hone::jinja {

Status Evaluator::run_macro(const Statement& statement) {
  keep_scopes();
  set_variable(statement.text, Value::macro({&statement, current_}));
  return {};
}

Status Evaluator::run_call_block(const Statement& statement) {
  keep_scopes();
  std::pair<std::string, Value> caller{"caller", Value::macro({&statement, current_})};
  const Value value = HONE_TRY(evaluate_call(*statement.value, &caller));
  const std::string* text = value.as_string() != nullptr ? value.as_string() : value.as_markup();
  if (text == nullptr) {
    return error(statement.offset, fmt::format("expected str instance, {} found", value.type_name()));
  }
  out_ += *text;
  return {};
}

// Into the current scope.
Status Evaluator::bind_parameters(std::uint32_t offset, const Statement& statement,
                                  const Arguments& arguments) {
  const Names& names = statement.parameters;
  const std::size_t given = std::min(arguments.positional.size(), names.size());
  for (std::size_t i = 0; i < given; ++i) set_variable(names[i], arguments.positional[i]);
  std::vector<std::pair<std::string, Value>> extra;
  const Value* caller = nullptr;
  for (const auto& named : arguments.named) {
    const auto at = std::find(names.begin() + static_cast<std::ptrdiff_t>(given), names.end(), named.first);
    if (at != names.end()) {
      set_variable(*at, named.second);
    } else if (named.first == "caller" && statement.takes_caller) {
      caller = &named.second;
    } else {
      extra.push_back(named);
    }
  }
  if (!statement.takes_kwargs && !extra.empty()) {
    return error(offset,
                 fmt::format("macro '{}' takes no keyword argument '{}'", statement.text, extra[0].first));
  }
  if (!statement.takes_varargs && arguments.positional.size() > names.size()) {
    return error(offset,
                 fmt::format("macro '{}' takes not more than {} argument(s)", statement.text, names.size()));
  }
  if (statement.takes_caller) {
    set_variable("caller", caller == nullptr ? Value::undefined("No caller defined") : *caller);
  }
  if (statement.takes_kwargs) set_variable("kwargs", HONE_TRY(bounded(offset, make_dict(std::move(extra)))));
  if (statement.takes_varargs) {
    std::vector<Value> rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(given),
                            arguments.positional.end());
    set_variable("varargs", HONE_TRY(bounded(offset, make_list(Shape::Tuple, std::move(rest)))));
  }
  // Defaults see the parameters before them.
  const std::size_t first_default = names.size() - statement.defaults.size();
  for (std::size_t i = given; i < names.size(); ++i) {
    const bool bound = std::any_of(arguments.named.begin(), arguments.named.end(),
                                   [&](const auto& named) { return named.first == names[i]; });
    if (bound) continue;
    if (i < first_default) {
      set_variable(names[i], Value::undefined(fmt::format("parameter '{}' was not provided", names[i])));
    } else {
      set_variable(names[i], HONE_TRY(evaluate(*statement.defaults[i - first_default])));
    }
  }
  return {};
}

Result<Value> Evaluator::call_macro(std::uint32_t offset, const Macro& macro, const Arguments& arguments) {
  HONE_TRY(charge(offset, 0));
  Scope* before = enter_scope(macro.scope, macro.statement->hidden);
  const auto work = [&]() -> Status {
    HONE_TRY(bind_parameters(offset, *macro.statement, arguments));
    HONE_TRY(run(macro.statement->body));
    return {};
  };
  std::string text = HONE_TRY(capture(work));
  leave_scope(before);
  return Value::string(std::move(text));
}

}  // namespace hone::jinja
