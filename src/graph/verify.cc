#include "graph/verify.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "graph/op_row.h"

namespace hone {
namespace {

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view after) : graph_(graph), after_(after) {}

  Status run() {
    written_.assign(graph_.values.size(), false);
    HONE_TRY(check_inputs());
    for (const Node& node : graph_.nodes) HONE_TRY(check_node(node));
    HONE_TRY(check_outputs());
    return check_states();
  }

 private:
  Error fail(const Node* node, std::string message, std::string expected = {},
             std::string actual = {}) const {
    std::string where = fmt::format("graph '{}'", graph_.name);
    if (node != nullptr) {
      where += fmt::format(", op {}", node->op);
      if (!node->module.empty()) where += fmt::format(" of {}", node->module);
      if (!node->outputs.empty() && in_range(node->outputs[0])) {
        where += fmt::format(", value {}", graph_.value_name(node->outputs[0]));
      }
    }
    if (!after_.empty()) where += fmt::format(", after {}", after_);
    return Error{ErrorCode::Internal,
                 Fault::Hone,
                 std::move(where),
                 std::move(message),
                 std::move(expected),
                 std::move(actual),
                 "switch the pass off with --passes=-NAME, and report it"};
  }
  bool in_range(ValueId value) const {
    return value >= 0 && static_cast<std::size_t>(value) < graph_.values.size();
  }

  Status check_symbols(const Node* node, const Type& type) const {
    std::string letters;
    for (const Dim& dim : type.shape) dim.collect_symbols(letters);
    for (const char letter : letters) {
      if (graph_.symbols.find(letter) == std::string::npos) {
        return fail(node, "a dim mentions a symbol that the graph does not declare", graph_.symbols,
                    std::string(1, letter));
      }
    }
    for (const Dim& dim : type.shape) {
      if (dim.is_constant() && *dim.as_constant() < 1)
        return fail(node, "a dim is at least 1", "1", dim.to_string());
    }
    return {};
  }

  Status check_inputs() {
    std::set<std::string_view> names;
    for (const GraphInput& input : graph_.inputs) {
      if (!names.insert(input.name).second) return fail(nullptr, "two inputs have one name", {}, input.name);
      if (!in_range(input.value)) return fail(nullptr, "an input names no value", {}, input.name);
      if (written_[static_cast<std::size_t>(input.value)]) {
        return fail(nullptr, "two inputs are one value", {}, input.name);
      }
      written_[static_cast<std::size_t>(input.value)] = true;
      HONE_TRY(check_symbols(nullptr, graph_.type(input.value)));
    }
    return {};
  }

  Status check_node(const Node& node) {
    for (const ValueId input : node.inputs) {
      if (!in_range(input)) return fail(&node, "an operand names no value");
      if (!written_[static_cast<std::size_t>(input)]) {
        return fail(&node, "a value is read before it is written", {}, graph_.value_name(input));
      }
    }
    Result<std::vector<Type>> types = infer_types(graph_, node);
    if (!types.ok()) {
      const Error& error = types.error();
      return fail(&node, error.message, error.expected, error.actual);
    }
    if (types->size() != node.outputs.size()) {
      return fail(&node, "wrong number of results", fmt::format("{}", types->size()),
                  fmt::format("{}", node.outputs.size()));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (!in_range(output)) return fail(&node, "a result names no value");
      if (written_[static_cast<std::size_t>(output)]) {
        return fail(&node, "a value is written twice", {}, graph_.value_name(output));
      }
      written_[static_cast<std::size_t>(output)] = true;
      if (!(graph_.type(output) == (*types)[i])) {
        return fail(&node, "a result has another type than its op gives", type_to_string((*types)[i]),
                    type_to_string(graph_.type(output)));
      }
      HONE_TRY(check_symbols(&node, graph_.type(output)));
    }
    if (node.body != nullptr) HONE_TRY(verify(*node.body, after_));
    return {};
  }

  Status check_outputs() const {
    std::set<std::string_view> names;
    for (const GraphOutput& output : graph_.outputs) {
      if (!names.insert(output.name).second)
        return fail(nullptr, "two outputs have one name", {}, output.name);
      if (!in_range(output.value) || !written_[static_cast<std::size_t>(output.value)]) {
        return fail(nullptr, "an output is never written", {}, output.name);
      }
    }
    return {};
  }

  // True if `to` is the state `from` after this node has appended to it, once, and read nothing else of it.
  static bool appends(const Node& node, ValueId from, ValueId to) {
    const auto output = std::find(node.outputs.begin(), node.outputs.end(), to) - node.outputs.begin();
    const int aliased = aliased_input(node, static_cast<std::size_t>(output));
    if (aliased < 0 || node.inputs[static_cast<std::size_t>(aliased)] != from ||
        std::count(node.inputs.begin(), node.inputs.end(), from) != 1)
      return false;
    if (node.body == nullptr) return node.op == "state_append";
    const Graph& body = *node.body;
    const UseMap uses(body);
    const ValueId state = body.inputs[static_cast<std::size_t>(aliased)].value;
    const std::vector<int>& users = uses.users[static_cast<std::size_t>(state)];
    return users.size() == 1 && !uses.escapes[static_cast<std::size_t>(state)] &&
           appends(body.nodes[static_cast<std::size_t>(users[0])], state,
                   body.outputs[static_cast<std::size_t>(output)].value);
  }

  // What reads the state as it was, itself or through views, stands before the assign.
  Status check_assigned(const UseMap& uses, const GraphInput& state, int assign) const {
    const Node& node = graph_.nodes[static_cast<std::size_t>(assign)];
    if (node.inputs[0] != state.value)
      return fail(&node, "a state is assigned by the node whose result is its update", {}, state.name);
    std::vector<ValueId> same_memory{state.value};
    for (std::size_t i = 0; i < same_memory.size(); ++i) {
      for (const int user : uses.users[static_cast<std::size_t>(same_memory[i])]) {
        const Node& reader = graph_.nodes[static_cast<std::size_t>(user)];
        if (user > assign || (user != assign && reader.op == "state_assign"))
          return fail(&reader, "what reads a state as it was stands before its one state_assign", {},
                      state.name);
        const OpRow* row = find_op(reader.op);
        if (row != nullptr && row->op_class == OpClass::View) same_memory.push_back(reader.outputs[0]);
      }
    }
    return {};
  }

  Status check_states() const {
    std::set<std::string_view> updated;
    for (const GraphOutput& update : graph_.state_updates) {
      if (!in_range(update.value)) return fail(nullptr, "a state update names no value", {}, update.name);
    }
    const UseMap uses(graph_);
    for (const GraphOutput& update : graph_.state_updates) {
      const GraphInput* input = graph_.find_input(update.name);
      if (input == nullptr || input->kind != InputKind::State) {
        return fail(nullptr, "a state update names no state", {}, update.name);
      }
      if (!updated.insert(update.name).second)
        return fail(nullptr, "a state is updated twice", {}, update.name);
      const int writer = uses.producer[static_cast<std::size_t>(update.value)];
      if (writer >= 0 && graph_.nodes[static_cast<std::size_t>(writer)].op == "state_assign") {
        HONE_TRY(check_assigned(uses, *input, writer));
        continue;
      }
      const std::vector<int>& users = uses.users[static_cast<std::size_t>(input->value)];
      const Node* append = users.size() == 1 ? &graph_.nodes[static_cast<std::size_t>(users[0])] : nullptr;
      if (append == nullptr || !appends(*append, input->value, update.value)) {
        return fail(nullptr, "a state is read only by its one append, whose result is the update",
                    "one state_append", update.name);
      }
    }
    for (const GraphInput& input : graph_.inputs) {
      if (input.kind == InputKind::State && !updated.contains(input.name)) {
        return fail(nullptr, "a state has no update", {}, input.name);
      }
    }
    return {};
  }

  const Graph& graph_;
  std::string_view after_;
  std::vector<bool> written_;
};

}  // namespace

Status verify(const Graph& graph, std::string_view after) {
  return Verifier(graph, after).run();
}

}  // namespace hone
