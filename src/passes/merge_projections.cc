#include "passes/merge_projections.h"

#include <algorithm>
#include <fmt/format.h>
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

// True unless both norm heads, with another eps or offset: a projection has one of each.
bool norms_heads_alike(const std::vector<ProjectionParts>& chosen, const ProjectionParts& member) {
  return std::ranges::all_of(chosen, [&](const ProjectionParts& other) {
    return !other.has_head_norm() || !member.has_head_norm() ||
           (other.head_eps == member.head_eps && other.head_offset == member.head_offset);
  });
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
    if (!norms_heads_alike(chosen, member)) continue;
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

// True if a norm is folded in or out: the rows' factors and the norm's offset are those of all sections, so
// norms are folded later.
bool has_folded_norm(const ProjectionParts& parts) {
  const auto has_next = [](const ProjectionSection& section) { return section.next_norm >= 0; };
  return parts.row_sums >= 0 || std::any_of(parts.sections.begin(), parts.sections.end(), has_next);
}

// The module that holds both: layers.3.attn of layers.3.attn.q_proj and layers.3.attn.k_proj.
std::string common_module(std::string_view a, std::string_view b) {
  std::size_t length = 0;
  for (std::size_t i = 0;; ++i) {
    const bool a_ends = i == a.size() || a[i] == '.';
    const bool b_ends = i == b.size() || b[i] == '.';
    if (a_ends && b_ends) length = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) return std::string(a.substr(0, length));
  }
}

ProjectionParts joined(const std::vector<ProjectionParts>& members) {
  ProjectionParts parts;
  parts.x = members.front().x;
  parts.terms = members.front().terms;
  parts.module = members.front().module;
  for (const ProjectionParts& member : members) {
    parts.module = common_module(parts.module, member.module);
    if (member.has_head_norm()) {
      parts.head_eps = member.head_eps;
      parts.head_offset = member.head_offset;
    }
    for (ProjectionSection section : member.sections) {
      section.output += static_cast<std::int64_t>(parts.outputs.size());
      parts.sections.push_back(section);
    }
    parts.outputs.insert(parts.outputs.end(), member.outputs.begin(), member.outputs.end());
    parts.nodes.insert(parts.nodes.end(), member.nodes.begin(), member.nodes.end());
  }
  if (parts.module.empty()) parts.module = members.back().module;
  return parts;
}

}  // namespace

Status merge_projections(Graph& graph, const PassContext& context) {
  const std::set<ValueId> weights = weight_values(graph);
  const auto node_count = static_cast<int>(graph.nodes.size());
  std::map<ValueId, std::vector<ProjectionParts>> by_x;
  for (int n = 0; n < node_count; ++n) {
    std::optional<ProjectionParts> parts = projection_parts(graph, weights, n);
    if (parts && !has_folded_norm(*parts)) by_x[parts->x].push_back(std::move(*parts));
  }
  bool merged = false;
  for (const auto& [x, members] : by_x) {
    if (members.size() < 2) continue;
    // Counted anew: what the last merge has moved may be what this one reads, or what reads it.
    const UseMap uses(graph);
    int slot = -1;
    const std::vector<ProjectionParts> chosen = together(uses, members, node_count, slot);
    if (chosen.size() < 2) continue;
    const ProjectionParts parts = joined(chosen);
    Node node = HONE_TRY(projection_node(graph, uses, parts));
    put_at(graph, parts.nodes, slot, std::move(node));
    context.fired(fmt::format("{}-of-one-x", chosen.size()));
    merged = true;
  }
  if (merged) sweep(graph);
  return {};
}

}  // namespace hone
