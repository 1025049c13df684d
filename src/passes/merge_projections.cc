#include "passes/merge_projections.h"

#include <algorithm>
#include <map>

#include "passes/projection_parts.h"

namespace hone {
namespace {

int last_producer(const UseMap& uses, const ProjectionParts& parts) {
  int last = -1;
  for (const ValueId input : parts.inputs())
    last = std::max(last, uses.producer[static_cast<std::size_t>(input)]);
  return last;
}

int first_reader(const UseMap& uses, const ProjectionParts& parts, int none) {
  int first = none;
  for (const ValueId output : parts.outputs) {
    for (const int user : uses.users[static_cast<std::size_t>(output)]) first = std::min(first, user);
  }
  return first;
}

// Those of `members`, in order, that can run together where one of them stands: behind what all of them read,
// and before what reads any of them. `slot` becomes that place.
std::vector<ProjectionParts> together(const UseMap& uses, const std::vector<ProjectionParts>& members,
                                      int node_count, int& slot) {
  std::vector<ProjectionParts> chosen;
  int readable = -1;
  int read = node_count;
  for (const ProjectionParts& member : members) {
    const int from = std::max(readable, last_producer(uses, member));
    const int to = std::min(read, first_reader(uses, member, node_count));
    const auto fits = [&](const ProjectionParts& other) {
      return other.nodes[0] > from && other.nodes[0] < to;
    };
    std::vector<ProjectionParts> with = chosen;
    with.push_back(member);
    const auto place = std::find_if(with.begin(), with.end(), fits);
    if (place == with.end()) continue;
    slot = place->nodes[0];
    chosen = std::move(with);
    readable = from;
    read = to;
  }
  return chosen;
}

ProjectionParts joined(const std::vector<ProjectionParts>& members) {
  ProjectionParts parts;
  parts.x = members.front().x;
  for (const ProjectionParts& member : members) {
    for (ProjectionSection section : member.sections) {
      section.output += static_cast<std::int64_t>(parts.outputs.size());
      parts.sections.push_back(section);
    }
    parts.outputs.insert(parts.outputs.end(), member.outputs.begin(), member.outputs.end());
    parts.nodes.insert(parts.nodes.end(), member.nodes.begin(), member.nodes.end());
  }
  return parts;
}

}  // namespace

Status merge_projections(Graph& graph, const PassContext&) {
  const UseMap uses(graph);
  const std::set<ValueId> weights = weight_values(graph);
  std::map<ValueId, std::vector<ProjectionParts>> by_x;
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    std::optional<ProjectionParts> parts = projection_parts(graph, weights, n);
    // One factor for each row of x serves all sections, so norms are folded later.
    if (parts && parts->row_sums < 0) by_x[parts->x].push_back(std::move(*parts));
  }
  struct Merge {
    ProjectionParts parts;
    int slot;
    Node node;
  };
  std::vector<Merge> merges;
  for (const auto& [x, members] : by_x) {
    if (members.size() < 2) continue;
    int slot = -1;
    const std::vector<ProjectionParts> chosen =
        together(uses, members, static_cast<int>(graph.nodes.size()), slot);
    if (chosen.size() < 2) continue;
    ProjectionParts parts = joined(chosen);
    Node node = HONE_TRY(projection_node(graph, uses, parts));
    merges.push_back({std::move(parts), slot, std::move(node)});
  }
  for (Merge& merge : merges) put_at(graph, merge.parts.nodes, merge.slot, std::move(merge.node));
  if (!merges.empty()) sweep(graph);
  return {};
}

}  // namespace hone
