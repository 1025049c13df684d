#include "passes/cse.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/op_row.h"
#include "graph/rewrite.h"
#include "graph/text.h"

namespace hone {
namespace {

// Attributes and bodies compare as texts: the text of a real number is exact, and -0.0 is not 0.0 in it.
// The operands of a commutative op stand in the order of their ids: a op b and b op a have the same bits, but
// for the payload of a NaN. (Not so max and min, which give their first operand for zeros of both signs.)
std::string key_of(const Node& node) {
  std::string key = node.op;
  std::vector<ValueId> inputs = node.inputs;
  constexpr std::string_view kCommutative[] = {"add", "mul", "equal", "and", "or"};
  if (std::find(std::begin(kCommutative), std::end(kCommutative), node.op) != std::end(kCommutative)) {
    std::sort(inputs.begin(), inputs.end());
  }
  for (const ValueId input : inputs) key += fmt::format(" {}", input);
  key += print_attributes(node.attributes);
  if (node.body != nullptr) key += print_graph(*node.body);
  return key;
}

}  // namespace

Status eliminate_common_subexpressions(Graph& graph, const PassContext& context) {
  std::vector<ValueId> stands_for(graph.values.size());
  for (std::size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueId>(i);
  const auto rename = [&](ValueId& value) { value = stands_for[static_cast<std::size_t>(value)]; };
  std::unordered_map<std::string, std::vector<ValueId>> first;  // key to the outputs of its first node
  for (Node& node : graph.nodes) {
    for (ValueId& input : node.inputs) rename(input);
    const OpRow* row = find_op(node.op);
    if (row == nullptr || row->op_class == OpClass::State) continue;
    const auto [found, is_new] = first.emplace(key_of(node), node.outputs);
    if (is_new) continue;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      stands_for[static_cast<std::size_t>(node.outputs[i])] = found->second[i];
    }
    context.fired(node.op);
    node = Node{};
  }
  for (GraphOutput& output : graph.outputs) rename(output.value);
  for (GraphOutput& update : graph.state_updates) rename(update.value);
  sweep(graph);
  return {};
}

}  // namespace hone
