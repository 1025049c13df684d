#include "apps/explain/snapshot.h"

#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/text.h"

namespace hone {
namespace {

std::string_view kind_name(InputKind kind) {
  constexpr std::string_view kNames[] = {"input", "weight", "state"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Rows of a graph, before the plan is known.
class RowMaker {
 public:
  explicit RowMaker(const Graph& graph) : graph_(graph), uses_(graph) {
    for (const GraphInput& input : graph.inputs) ports_[input.value] = &input;
  }

  NodeRow row(const Node& node) const {
    NodeRow out;
    out.value = graph_.value_name(node.outputs[0]);
    out.op = node.op;
    out.module = node.module;
    out.type = type_to_string(graph_.type(node.outputs[0]));
    out.attributes = print_attributes(node.attributes);
    out.constant = node.op == "constant";
    if (node.body != nullptr) out.body = print_graph(*node.body);
    for (const ValueId value : node.inputs) out.inputs.push_back(describe(value));
    for (const ValueId value : node.outputs) out.outputs.push_back(describe(value));
    return out;
  }

 private:
  NodeValue describe(ValueId value) const {
    NodeValue out{graph_.value_name(value), {}, type_to_string(graph_.type(value)), {}};
    const int producer = uses_.producer[static_cast<std::size_t>(value)];
    if (producer >= 0) {
      out.producer = graph_.nodes[static_cast<std::size_t>(producer)].op;
    } else if (const auto port = ports_.find(value); port != ports_.end()) {
      out.port = port->second->name;
      out.producer = kind_name(port->second->kind);
    }
    return out;
  }

  const Graph& graph_;
  UseMap uses_;
  std::map<ValueId, const GraphInput*> ports_;
};

Status add_costs(NodeRow& row, const Step& step, int index, const Bindings& bound) {
  row.step = index;
  row.kernel = step.kernel->name;
  row.reference = step.kernel->reference;
  row.bytes = HONE_TRY(step.bytes_moved.evaluate(bound));
  row.operations = HONE_TRY(step.operations.evaluate(bound));
  return {};
}

}  // namespace

Result<Snapshot> take_snapshot(const Graph& graph, const Target& target, Level level,
                               const StepSizes& sizes) {
  const Bindings bound = sizes.bindings();
  const Plan plan = HONE_TRY(make_plan(graph, {target, level, bound, false}));
  Snapshot out;
  out.numbers = HONE_TRY(plan_numbers(graph, plan));
  out.steps = static_cast<int>(plan.steps.size());
  std::unordered_map<std::string, int> step_of;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) step_of[plan.steps[i].value] = static_cast<int>(i);
  std::unordered_map<std::string, int> life_of;
  for (const ValueLife& life : plan.lives) {
    life_of[life.value] = static_cast<int>(out.lives.size());
    out.lives.push_back({life.value, life.module, HONE_TRY(life.bytes.evaluate(bound)),
                         HONE_TRY(life.offset.evaluate(bound)), life.first, life.last});
  }
  const RowMaker rows(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    NodeRow row = rows.row(graph.nodes[n]);
    row.index = static_cast<int>(n);
    if (const auto step = step_of.find(row.value); step != step_of.end() && !row.constant) {
      HONE_TRY(add_costs(row, plan.steps[static_cast<std::size_t>(step->second)], step->second, bound));
    }
    for (const NodeValue& output : row.outputs) {
      const auto life = life_of.find(output.name);
      if (life == life_of.end()) continue;
      if (row.life < 0) row.life = life->second;
      row.memory += out.lives[static_cast<std::size_t>(life->second)].bytes;
    }
    out.nodes.push_back(std::move(row));
  }
  return out;
}

int layer_of(std::string_view module) {
  constexpr std::string_view kPrefix = "layers.";
  if (!module.starts_with(kPrefix)) return -1;
  module.remove_prefix(kPrefix.size());
  int layer = -1;
  const auto [end, failed] = std::from_chars(module.data(), module.data() + module.size(), layer);
  if (failed != std::errc{} || layer < 0) return -1;
  return end == module.data() + module.size() || *end == '.' ? layer : -1;
}

int layer_count(const std::vector<NodeRow>& nodes) {
  int count = 0;
  for (const NodeRow& node : nodes) count = std::max(count, layer_of(node.module) + 1);
  return count;
}

Graph layer_graph(const Graph& graph, int layer) {
  Graph out;
  out.name = fmt::format("{}.layers.{}", graph.name, layer);
  out.symbols = graph.symbols;
  out.values = graph.values;
  std::map<ValueId, const GraphInput*> ports;
  for (const GraphInput& input : graph.inputs) ports[input.value] = &input;
  const UseMap uses(graph);
  std::set<ValueId> known;
  for (const Node& node : graph.nodes) {
    if (layer_of(node.module) != layer) continue;
    for (const ValueId value : node.inputs) {
      if (!known.insert(value).second) continue;
      const int producer = uses.producer[static_cast<std::size_t>(value)];
      if (producer < 0 && ports.contains(value)) {
        out.inputs.push_back(*ports.at(value));
      } else if (producer >= 0 && graph.nodes[static_cast<std::size_t>(producer)].op == "constant") {
        out.nodes.push_back(graph.nodes[static_cast<std::size_t>(producer)]);
      } else {
        out.inputs.push_back({graph.value_name(value), InputKind::Input, value});
      }
    }
    known.insert(node.outputs.begin(), node.outputs.end());
    out.nodes.push_back(node);
  }
  const UseMap inside(out);
  for (const Node& node : out.nodes) {
    if (layer_of(node.module) != layer) continue;
    for (const ValueId value : node.outputs) {
      const auto v = static_cast<std::size_t>(value);
      const bool leaves = uses.users[v].size() > inside.users[v].size();
      bool escapes = false;
      for (const GraphOutput& update : graph.state_updates) {
        if (update.value != value) continue;
        out.state_updates.push_back(update);
        escapes = true;
      }
      if (!escapes && (leaves || uses.escapes[v])) out.outputs.push_back({graph.value_name(value), value});
    }
  }
  return out;
}

}  // namespace hone
