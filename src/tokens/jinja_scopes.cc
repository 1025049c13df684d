#include "tokens/jinja_scopes.h"

#include <array>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hone::jinja {

namespace {

// The names of one scope, or of one way through an `if` of it, which adds to what was known before (`base`).
// What is known of a name is whether it begins as undefined.
class ScopeNames {
 public:
  explicit ScopeNames(const ScopeNames* parent, const ScopeNames* base = nullptr)
      : parent_(parent), base_(base) {}

  void load(const std::string& name) {
    if (!knows(name)) names_[name] = false;
  }
  void parameter(const std::string& name) {
    stored_.insert(name);
    names_[name] = false;
  }
  void store(const std::string& name) {
    stored_.insert(name);
    if (has(name)) return;
    names_[name] = parent_ == nullptr || !parent_->knows(name);
  }
  ScopeNames way() const { return ScopeNames(parent_, this); }
  // After an if, what its three ways have done. A name that not all of them assign keeps its outer meaning.
  void join(const std::array<ScopeNames, 3>& ways) {
    std::unordered_map<std::string, std::size_t> stores;
    for (const ScopeNames& way : ways) {
      for (const std::string& name : way.stored_) {
        if (!has_stored(name)) ++stores[name];
      }
    }
    for (const ScopeNames& way : ways) {
      for (const auto& [name, hidden] : way.names_) names_[name] = hidden;
      stored_.insert(way.stored_.begin(), way.stored_.end());
    }
    for (const auto& [name, count] : stores) {
      if (count < ways.size()) names_[name] = false;
    }
  }
  Names hidden() const {
    Names out;
    for (const auto& [name, hidden] : names_) {
      if (hidden) out.push_back(name);
    }
    return out;
  }

 private:
  bool has(const std::string& name) const {
    return names_.contains(name) || (base_ != nullptr && base_->has(name));
  }
  bool has_stored(const std::string& name) const {
    return stored_.contains(name) || (base_ != nullptr && base_->has_stored(name));
  }
  bool knows(const std::string& name) const {
    return has(name) || (parent_ != nullptr && parent_->knows(name));
  }

  const ScopeNames* parent_;
  const ScopeNames* base_;
  std::unordered_map<std::string, bool> names_;
  std::unordered_set<std::string> stored_;
};

void read(const Expr& expr, ScopeNames& names) {
  if (expr.kind == ExprKind::Name) names.load(expr.text);
  for (const ExprPtr& child : expr.children) {
    if (child) read(*child, names);
  }
}

void read(const ExprPtr& expr, ScopeNames& names) {
  if (expr) read(*expr, names);
}

void write(const Target& target, ScopeNames& names, bool parameter) {
  for (const Target& part : target.parts) write(part, names, parameter);
  if (target.is_tuple) return;
  if (!target.attribute.empty()) return names.load(target.name);
  return parameter ? names.parameter(target.name) : names.store(target.name);
}

// What the statements of a block do to the names of the scope they stand in; scopes inside are left alone.
void visit(const Block& block, ScopeNames& names);

void visit_if(const Statement& statement, ScopeNames& names) {
  read(statement.branches[0].first, names);
  std::array<ScopeNames, 3> ways{names.way(), names.way(), names.way()};
  visit(statement.branches[0].second, ways[0]);
  for (std::size_t i = 1; i < statement.branches.size(); ++i) {
    // Each elif is an `if` of its own, with no elif and no else.
    ScopeNames& way = ways[1];
    read(statement.branches[i].first, way);
    std::array<ScopeNames, 3> inner{way.way(), way.way(), way.way()};
    visit(statement.branches[i].second, inner[0]);
    way.join(inner);
  }
  visit(statement.body, ways[2]);
  names.join(ways);
}

void visit(const Block& block, ScopeNames& names) {
  for (const Statement& statement : block) {
    switch (statement.kind) {
      case StatementKind::If:
        visit_if(statement, names);
        break;
      case StatementKind::Set:
        read(statement.value, names);
        write(statement.target, names, false);
        break;
      case StatementKind::SetBlock:
        write(statement.target, names, false);
        break;
      case StatementKind::Macro:
        names.store(statement.text);
        break;
      case StatementKind::With:
        for (const auto& [target, value] : statement.bindings) read(value, names);
        break;
      default:
        read(statement.value, names);
        break;
    }
  }
}

// Then the scopes inside of `block`, which stands in the scope `outer`.
void descend(Block& block, const ScopeNames& outer);

void enter(Block& block, ScopeNames& names, Names& hidden) {
  visit(block, names);
  hidden = names.hidden();
  descend(block, names);
}

void descend_for(Statement& statement, const ScopeNames& outer) {
  ScopeNames body(&outer);
  write(statement.target, body, true);
  body.parameter("loop");
  enter(statement.body, body, statement.hidden);
  ScopeNames otherwise(&outer);
  enter(statement.otherwise, otherwise, statement.hidden_otherwise);
}

void descend(Block& block, const ScopeNames& outer) {
  for (Statement& statement : block) {
    switch (statement.kind) {
      case StatementKind::If:
        for (auto& [condition, branch] : statement.branches) descend(branch, outer);
        descend(statement.body, outer);
        break;
      case StatementKind::For:
        descend_for(statement, outer);
        break;
      case StatementKind::Macro:
      case StatementKind::CallBlock: {
        ScopeNames body(&outer);
        for (const std::string& name : statement.parameters) body.parameter(name);
        if (statement.takes_caller) body.parameter("caller");
        if (statement.takes_kwargs) body.parameter("kwargs");
        if (statement.takes_varargs) body.parameter("varargs");
        for (const ExprPtr& value : statement.defaults) read(value, body);
        enter(statement.body, body, statement.hidden);
        break;
      }
      case StatementKind::With: {
        ScopeNames body(&outer);
        for (const auto& [target, value] : statement.bindings) write(target, body, true);
        enter(statement.body, body, statement.hidden);
        break;
      }
      case StatementKind::SetBlock:
      case StatementKind::Scope:
      case StatementKind::FilterBlock: {
        ScopeNames body(&outer);
        enter(statement.body, body, statement.hidden);
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace

void analyse_scopes(Template& tree) {
  ScopeNames root(nullptr);
  enter(tree.block, root, tree.hidden);
}

}  // namespace hone::jinja
