// For loops: where their items come from, and the variable `loop`. Items are taken one at a time, for the
// condition of a loop may depend on what its body did before.
#include <fmt/format.h>
#include <utility>

#include "tokens/jinja_builtins.h"
#include "tokens/jinja_eval.h"

namespace hone::jinja {

class ItemSource {
 public:
  ItemSource(Evaluator& evaluator, const Statement& statement, Scope* scope)
      : evaluator_(evaluator), statement_(statement), scope_(scope) {}

  Status open(const Value& iterable) {
    generator_ = iterable.generator_pointer();
    if (!generator_) items_ = HONE_TRY(evaluator_.iterate(statement_.value->offset, iterable));
    return {};
  }

  // The number of all items, if it is known without taking them.
  std::optional<std::int64_t> length() const {
    if (statement_.condition || !items_) return std::nullopt;
    return static_cast<std::int64_t>(items_->items.size());
  }

  // The next item into `out`; false at the end.
  Result<bool> next(Value& out) {
    while (HONE_TRY(take(out))) {
      HONE_TRY(evaluator_.charge(statement_.offset, 0));
      if (!statement_.condition || replaced_) return true;
      Scope* before = evaluator_.enter_scope(scope_, {});
      HONE_TRY(evaluator_.assign(statement_.target, out));
      const Value holds = HONE_TRY(evaluator_.evaluate(*statement_.condition));
      evaluator_.leave_scope(before);
      if (holds.truth()) return true;
    }
    return false;
  }

  // From now on these, which the condition has let through.
  void replace(Value::ListPtr items) {
    items_ = std::move(items);
    generator_.reset();
    at_ = 0;
    replaced_ = true;
  }

 private:
  Result<bool> take(Value& out) {
    if (!generator_) {
      if (at_ == items_->items.size()) return false;
      out = items_->items[at_++];
      return true;
    }
    if (generator_->at < generator_->items.size()) {
      out = generator_->items[generator_->at++];
      return true;
    }
    if (generator_->failure) return *std::exchange(generator_->failure, std::nullopt);
    return false;
  }

  Evaluator& evaluator_;
  const Statement& statement_;
  Scope* scope_;
  Value::ListPtr items_;
  Value::GeneratorPtr generator_;
  std::size_t at_ = 0;
  bool replaced_ = false;
};

// neighbours: 0 the item before, 1 the current one, 2 the next one if `has_next`.
Result<bool> Evaluator::peek(Loop& loop) {
  if (!loop.has_next) loop.has_next = HONE_TRY(loop.source->next(loop.neighbours[2]));
  return loop.has_next;
}

Result<bool> Evaluator::advance(Loop& loop) {
  if (!HONE_TRY(peek(loop))) return false;
  loop.has_next = false;
  ++loop.index;
  loop.neighbours[0] = std::exchange(loop.neighbours[1], std::exchange(loop.neighbours[2], Value()));
  return true;
}

Status Evaluator::run_for(const Statement& statement) {
  const Value iterable = HONE_TRY(evaluate(*statement.value));
  if (statement.recursive) keep_scopes();
  return run_loop(statement, iterable, 1);
}

// In the scope around the loop.
Status Evaluator::run_loop(const Statement& statement, const Value& iterable, std::int32_t depth) {
  Scope* around = current_;
  const auto loop = std::make_shared<Loop>();
  loop->source = std::make_shared<ItemSource>(*this, statement, around);
  HONE_TRY(loop->source->open(iterable));
  loop->neighbours.resize(3);
  loop->depth = depth;
  loop->recursive = statement.recursive ? &statement : nullptr;
  loop->scope = around;
  // Jinja notes at the end of the body that there was a round: `continue` and `break` leave before that.
  bool whole_round = false;
  while (HONE_TRY(advance(*loop))) {
    // A variable set in the body lasts for one round.
    enter_scope(around, statement.hidden);
    set_variable("loop", Value::loop(loop));
    HONE_TRY(assign(statement.target, loop->neighbours[1]));
    const Flow flow = HONE_TRY(run(statement.body));
    leave_scope(around);
    whole_round = whole_round || flow == Flow::Normal;
    if (flow == Flow::Break) break;
  }
  return whole_round ? Status() : run_scope(statement.otherwise, statement.hidden_otherwise);
}

// loop(items) in a recursive loop: the loop again over other items, as text.
Result<Value> Evaluator::call_loop(std::uint32_t offset, const Loop& loop, const Arguments& arguments) {
  if (loop.recursive == nullptr) {
    return error(offset, "The loop must have the 'recursive' marker to be called recursively.");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return error(offset, "a loop is called with what it is to iterate over");
  }
  Scope* before = std::exchange(current_, loop.scope);
  const auto work = [&] { return run_loop(*loop.recursive, arguments.positional[0], loop.depth + 1); };
  std::string text = HONE_TRY(capture(work));
  current_ = before;
  return Value::string(std::move(text));
}

Result<Value> Evaluator::loop_attribute(std::uint32_t offset, const Value& value, std::string_view name) {
  Loop& loop = *value.as_loop();
  if (name == "index") return Value::integer(loop.index + 1);
  if (name == "index0") return Value::integer(loop.index);
  if (name == "depth") return Value::integer(loop.depth);
  if (name == "depth0") return Value::integer(loop.depth - 1);
  if (name == "first") return Value::boolean(loop.index == 0);
  if (name == "last") return Value::boolean(!HONE_TRY(peek(loop)));
  if (name == "previtem") {
    return loop.index == 0 ? Value::undefined("there is no previous item") : loop.neighbours[0];
  }
  if (name == "nextitem") {
    return HONE_TRY(peek(loop)) ? loop.neighbours[2] : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") return Value::method(value, std::string(name));
  if (name != "length" && name != "revindex" && name != "revindex0") {
    return unsupported(offset, fmt::format("attribute 'loop.{}'", name));
  }
  if (!loop.length) loop.length = loop.source->length();
  // Without a known length Jinja takes all that is left.
  if (!loop.length) {
    std::vector<Value> rest;
    if (loop.has_next) rest.push_back(loop.neighbours[2]);
    Value taken;
    while (HONE_TRY(loop.source->next(taken))) rest.push_back(taken);
    loop.length = loop.index + 1 + static_cast<std::int64_t>(rest.size());
    if (loop.has_next) rest.erase(rest.begin());
    loop.source->replace(make_list(Shape::List, std::move(rest)).list_pointer());
  }
  if (name == "length") return Value::integer(*loop.length);
  return Value::integer(*loop.length - loop.index - (name == "revindex0" ? 1 : 0));
}

}  // namespace hone::jinja
