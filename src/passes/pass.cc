#include "passes/pass.h"

#include <algorithm>
#include <fmt/format.h>

#include "graph/cost.h"

namespace hone {

void PassContext::fired(std::string_view rule, std::int64_t times) const {
  if (rules == nullptr || times == 0) return;
  const auto found = std::ranges::find(*rules, rule, &RuleCount::name);
  if (found == rules->end()) {
    rules->push_back({std::string(rule), times});
  } else {
    found->fired += times;
  }
}

std::string rules_to_string(const std::vector<RuleCount>& rules) {
  std::string out;
  for (const RuleCount& rule : rules)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", rule.name, rule.fired);
  return out;
}

std::string contract_to_string(const Contract& contract) {
  std::string_view kind;
  switch (contract.kind) {
    case ContractKind::SameBits:
      kind = "same bits";
      break;
    case ContractKind::FewerRoundings:
      kind = "fewer roundings";
      break;
    case ContractKind::Reorders:
      kind = "reorders";
      break;
    case ContractKind::RoundsToType:
      kind = "rounds to type";
      break;
  }
  if (contract.bound.empty()) return std::string(kind);
  return fmt::format("{}, bound {}", kind, contract.bound);
}

GraphCounts count_graph(const Graph& graph) {
  GraphCounts counts;
  for (const Node& node : graph.nodes) {
    if (node.op == "constant") continue;
    ++counts.nodes;
    if (is_launch(node)) ++counts.launches;
  }
  return counts;
}

}  // namespace hone
