#include "apps/explain/screen.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "apps/explain/escape.h"
#include "apps/plural.h"
#include "apps/units.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTop = 5;
constexpr std::size_t kTopShown = 3;  // so that the rules of passes have their lines on one screen
// What 120 columns leave.
constexpr std::size_t kColumns = 120;
constexpr std::size_t kContractWidth = 25;
constexpr std::size_t kKernelWidth = 33;

// "layers.3.attn" -> "layers.*.attn"
std::string without_layer(const std::string& module) {
  const int layer = layer_of(module);
  if (layer < 0) return module;
  const std::size_t end = fmt::format("layers.{}", layer).size();
  return "layers.*" + module.substr(end);
}

std::int64_t cost_of(const NodeRow& node, CostKind kind) {
  if (kind == CostKind::Bytes) return node.bytes;
  if (kind == CostKind::Operations) return node.operations;
  return node.memory;
}

std::string headline(const Explanation& explanation) {
  const LevelNumbers& eager = explanation.levels[1];
  const LevelNumbers& best = explanation.levels[3];
  const StepSizes& sizes = explanation.sizes;
  return fmt::format(
      "launches {} ({}), bytes moved {} ({}), activation memory {} ({})\n"
      "O1 -> O3 of {}, for {}, {}, context {}\n\n",
      count_change(eager.launches, best.launches), percent_change(eager.launches, best.launches),
      bytes_change(eager.bytes, best.bytes), percent_change(eager.bytes, best.bytes),
      bytes_change(eager.activation_bytes, best.activation_bytes),
      percent_change(eager.activation_bytes, best.activation_bytes), explanation.model,
      counted(sizes.batch, "sequence"), counted(sizes.tokens, "token"), sizes.context);
}

// A formula that does not fit whole says nothing in part.
std::string short_contract(const std::string& contract) {
  if (contract.size() <= kContractWidth) return contract;
  constexpr std::string_view kBound = ", bound ";
  const std::size_t bound = contract.find(kBound);
  if (bound == std::string::npos) return clipped(contract, kContractWidth);
  return contract.substr(0, bound + kBound.size()) + "..";
}

std::string chain_text(const Explanation& explanation, bool wide) {
  constexpr std::string_view kRow = "{:<18}{:>13}{:>13}{:>22}{:>21}{:>6}  {}\n";
  std::string out =
      fmt::format(kRow, "pass", "nodes", "launches", "bytes moved", "activation memory", "ms", "contract");
  for (const PassNumbers& row : explanation.passes) {
    const std::string contract = contract_to_string(row.report.contract);
    const std::string shown = wide ? contract : short_contract(contract);
    const std::string ms = fmt::format("{:.1f}", row.report.milliseconds);
    if (!row.report.changed) {
      out += fmt::format(kRow, row.report.name, "(unchanged)", "", "", "", ms, shown);
      continue;
    }
    out += fmt::format(kRow, row.report.name, count_change(row.before.nodes, row.after.nodes),
                       count_change(row.before.launches, row.after.launches),
                       bytes_change(row.before.bytes, row.after.bytes),
                       bytes_change(row.before.activation_bytes, row.after.activation_bytes), ms, shown);
    // Where launches become fewer, their number says what the pass has done.
    const std::string rules = rules_to_string(row.report.rules);
    if (rules.empty() || (!wide && row.after.launches != row.before.launches)) continue;
    out += fmt::format("  {}\n", wide ? rules : clipped(rules, kColumns - 2));
  }
  return out;
}

std::string levels_text(const Explanation& explanation) {
  std::string out = fmt::format("{:<18}{:>13}{:>13}{:>22}{:>21}{:>14}\n", "level", "nodes", "launches",
                                "bytes moved", "activation memory", "lower bound");
  for (std::size_t i = 0; i < 4; ++i) {
    const LevelNumbers& level = explanation.levels[i];
    out += fmt::format("{:<18}{:>13}{:>13}{:>22}{:>21}{:>14}\n", fmt::format("O{}", i), level.nodes,
                       level.launches, human_bytes(level.bytes), human_bytes(level.activation_bytes),
                       human_bytes(level.activation_lower_bound_bytes));
  }
  return out;
}

std::string top_text(const Snapshot& snapshot, CostKind kind, std::string_view title, std::int64_t whole) {
  constexpr std::string_view kRow = "{:<18}{:>6} {:>10} {:>6}  {:<23}{:<20}{}\n";
  std::string out = fmt::format(kRow, title, "nodes", kind == CostKind::Memory ? "each" : "together", "share",
                                "module", "output", "kernel");
  for (const CostGroup& group : dearest_nodes(snapshot, kind, kTopShown)) {
    const std::string cost =
        kind == CostKind::Operations ? human_operations(group.cost) : human_bytes(group.cost);
    const double share = whole > 0 ? 100.0 * static_cast<double>(group.cost) / static_cast<double>(whole) : 0;
    out +=
        fmt::format(kRow, clipped(group.op, 17), group.count, cost, fmt::format("{:.0f} %", share),
                    clipped(group.module, 22), clipped(group.type, 19), clipped(group.kernel, kKernelWidth));
  }
  return out;
}

// One place for each op and phase, whichever layers it stands in.
std::string times_text(const Explanation& explanation) {
  constexpr std::string_view kRow = "{:<18}{:>6} {:>10} {:>6}  {}\n";
  std::string out = fmt::format(kRow, "most time", "runs", "ms", "share", "of (measured)");
  for (std::size_t i = 0; i < std::min(kTop, explanation.times.size()); ++i) {
    const TimeRow& row = explanation.times[i];
    out += fmt::format(kRow, clipped(clean_text(row.op), 17), row.launches,
                       fmt::format("{:.2f}", row.seconds * 1e3), fmt::format("{:.0f} %", row.share * 100),
                       clipped(clean_text(row.phase), 40));
  }
  return out;
}

std::int64_t all_operations(const Snapshot& snapshot) {
  std::int64_t sum = 0;
  for (const NodeRow& node : snapshot.nodes) sum += node.operations;
  return sum;
}

Json groups_json(const Snapshot& snapshot, CostKind kind, const char* field) {
  Json out = Json::array();
  for (const CostGroup& group : dearest_nodes(snapshot, kind, kTop)) {
    out.push_back({{"op", group.op},
                   {"module", group.module},
                   {"value", group.value},
                   {"type", group.type},
                   {"kernel", group.kernel},
                   {"nodes", group.count},
                   {field, group.cost}});
  }
  return out;
}

// Why the pass stands where it stands.
std::string pass_reason(const std::string& name) {
  const Result<const PassRow*> row = find_pass(name);
  return row.ok() ? std::string((*row)->why) : std::string();
}

}  // namespace

std::vector<CostGroup> dearest_nodes(const Snapshot& snapshot, CostKind kind, std::size_t most) {
  std::map<std::string, std::size_t> known;
  std::vector<CostGroup> groups;
  for (const NodeRow& node : snapshot.nodes) {
    const std::int64_t cost = cost_of(node, kind);
    if (cost == 0 || node.step < 0) continue;
    const std::string module = without_layer(node.module);
    const std::string key = fmt::format("{}\n{}\n{}\n{}", node.op, module, node.type, node.kernel);
    const auto [place, added] = known.try_emplace(key, groups.size());
    if (added) groups.push_back({node.op, module, node.type, node.kernel, node.value, 0, 0});
    CostGroup& group = groups[place->second];
    ++group.count;
    group.cost = kind == CostKind::Memory ? std::max(group.cost, cost) : group.cost + cost;
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const CostGroup& a, const CostGroup& b) { return a.cost > b.cost; });
  if (groups.size() > most) groups.resize(most);
  return groups;
}

std::string screen_text(const Explanation& explanation, bool wide) {
  const Snapshot& last = explanation.final;
  std::string out = headline(explanation);
  out += chain_text(explanation, wide) + "\n" + levels_text(explanation) + "\n";
  if (!explanation.times.empty()) out += times_text(explanation);
  out += top_text(last, CostKind::Bytes, "most bytes moved", last.numbers.bytes);
  out += top_text(last, CostKind::Operations, "most operations", all_operations(last));
  out += top_text(last, CostKind::Memory, "most memory", last.numbers.activation_bytes);
  return out;
}

Json screen_json(const Explanation& explanation) {
  Json passes = Json::array();
  for (const PassNumbers& row : explanation.passes) {
    Json rules = Json::array();
    for (const RuleCount& rule : row.report.rules)
      rules.push_back({{"name", rule.name}, {"fired", rule.fired}});
    passes.push_back({{"name", row.report.name},
                      {"nodes_before", row.before.nodes},
                      {"nodes_after", row.after.nodes},
                      {"launches_before", row.before.launches},
                      {"launches_after", row.after.launches},
                      {"bytes_before", row.before.bytes},
                      {"bytes_after", row.after.bytes},
                      {"memory_before_bytes", row.before.activation_bytes},
                      {"memory_after_bytes", row.after.activation_bytes},
                      {"ms", row.report.milliseconds},
                      {"changed", row.report.changed},
                      {"rules", std::move(rules)},
                      {"contract", contract_to_string(row.report.contract)},
                      {"why", pass_reason(row.report.name)}});
  }
  Json levels = Json::object();
  for (std::size_t i = 0; i < 4; ++i) {
    const LevelNumbers& level = explanation.levels[i];
    levels[fmt::format("O{}", i)] = {{"nodes", level.nodes},
                                     {"launches", level.launches},
                                     {"bytes", level.bytes},
                                     {"activation_bytes", level.activation_bytes},
                                     {"activation_lower_bound_bytes", level.activation_lower_bound_bytes}};
  }
  Json symbols = Json::array();
  for (const char letter : explanation.symbols) symbols.push_back(std::string(1, letter));
  Json times = Json::array();
  for (std::size_t i = 0; i < std::min(kTop, explanation.times.size()); ++i) {
    const TimeRow& row = explanation.times[i];
    times.push_back({{"op", row.op},
                     {"phase", row.phase},
                     {"launches", row.launches},
                     {"total_s", row.seconds},
                     {"share", row.share}});
  }
  return {{"passes", std::move(passes)},
          {"levels", std::move(levels)},
          {"symbols", std::move(symbols)},
          {"batch", explanation.sizes.batch},
          {"tokens", explanation.sizes.tokens},
          {"ctx", explanation.sizes.context},
          {"top",
           {{"bytes", groups_json(explanation.final, CostKind::Bytes, "bytes")},
            {"operations", groups_json(explanation.final, CostKind::Operations, "operations")},
            {"memory", groups_json(explanation.final, CostKind::Memory, "memory_bytes")},
            {"time", std::move(times)}}}};
}

}  // namespace hone
