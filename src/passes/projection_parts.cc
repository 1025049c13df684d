#include "passes/projection_parts.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace hone {
namespace {

using Field = std::int64_t ProjectionSection::*;

constexpr std::array kOperands{&ProjectionSection::weight,    &ProjectionSection::gate,
                               &ProjectionSection::bias,      &ProjectionSection::head_norm,
                               &ProjectionSection::cosine,    &ProjectionSection::sine,
                               &ProjectionSection::residual,  &ProjectionSection::state,
                               &ProjectionSection::positions, &ProjectionSection::next_norm};

std::optional<ProjectionParts> parts_of_projection(const Node& node) {
  const auto* fields = node.attributes.get<std::vector<std::int64_t>>("sections");
  if (fields == nullptr || fields->size() % kProjectionFields != 0) return std::nullopt;
  ProjectionParts parts;
  parts.x = node.inputs[0];
  parts.outputs = node.outputs;
  parts.terms = node.attributes.integer("terms", 1);
  for (std::size_t i = 0; i < fields->size(); i += kProjectionFields) {
    ProjectionSection& section = parts.sections.emplace_back();
    std::memcpy(static_cast<void*>(&section), fields->data() + i, sizeof(section));
    for (const Field operand : kOperands) {
      if (section.*operand >= 0) section.*operand = node.inputs[static_cast<std::size_t>(section.*operand)];
    }
  }
  const std::int64_t sums = node.attributes.integer("row_sums", -1);
  if (sums >= 0) parts.row_sums = node.inputs[static_cast<std::size_t>(sums)];
  parts.eps = node.attributes.real("eps");
  parts.next_offset = node.attributes.real("next_offset");
  parts.head_eps = node.attributes.real("head_eps");
  parts.head_offset = node.attributes.real("head_offset");
  return parts;
}

}  // namespace

std::vector<ValueId> ProjectionParts::inputs() const {
  std::vector<ValueId> found{x};
  const auto add = [&](std::int64_t value) {
    if (value >= 0 && std::find(found.begin(), found.end(), value) == found.end())
      found.push_back(static_cast<ValueId>(value));
  };
  for (const ProjectionSection& section : sections) {
    for (const Field operand : kOperands) add(section.*operand);
  }
  add(row_sums);
  return found;
}

bool ProjectionParts::has_head_norm() const {
  return std::ranges::any_of(sections,
                             [](const ProjectionSection& section) { return section.head_norm >= 0; });
}

Attributes ProjectionParts::attributes() const {
  const std::vector<ValueId> values = inputs();
  const auto number = [&](std::int64_t value) -> std::int64_t {
    return std::find(values.begin(), values.end(), value) - values.begin();
  };
  std::vector<std::int64_t> fields(sections.size() * kProjectionFields);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    ProjectionSection section = sections[i];
    for (const Field operand : kOperands) {
      if (section.*operand >= 0) section.*operand = number(section.*operand);
    }
    std::memcpy(fields.data() + i * kProjectionFields, &section, sizeof(section));
  }
  Attributes attributes{{"sections", std::move(fields)}};
  if (terms != 1) attributes.set("terms", terms);
  if (row_sums >= 0) {
    attributes.set("row_sums", number(row_sums));
    attributes.set("eps", eps);
  }
  if (next_offset != 0) attributes.set("next_offset", next_offset);
  if (has_head_norm()) attributes.set("head_eps", head_eps);
  if (head_offset != 0) attributes.set("head_offset", head_offset);
  return attributes;
}

std::set<ValueId> weight_values(const Graph& graph) {
  std::set<ValueId> weights;
  for (const GraphInput& input : graph.inputs) {
    if (input.kind == InputKind::Weight) weights.insert(input.value);
  }
  return weights;
}

std::optional<ProjectionParts> projection_parts(const Graph& graph, const std::set<ValueId>& weights,
                                                int index) {
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  std::optional<ProjectionParts> parts;
  if (node.op == "projection") {
    parts = parts_of_projection(node);
  } else {
    const bool gated = node.op == "swiglu_mlp" || node.op == "geglu_mlp";
    if (!gated && (node.op != "matmul" || node.attributes.integer("transpose_b") == 0)) return std::nullopt;
    if (graph.type(node.inputs[0]).shape.size() != 3) return std::nullopt;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (!weights.contains(node.inputs[i]) || graph.type(node.inputs[i]).shape.size() != 2)
        return std::nullopt;
    }
    parts.emplace();
    parts->x = node.inputs[0];
    parts->outputs = node.outputs;
    ProjectionSection& section = parts->sections.emplace_back();
    section.weight = node.inputs[gated ? 2 : 1];
    if (gated) {
      section.gate = node.inputs[1];
      section.activation = static_cast<std::int64_t>(
          node.op == "swiglu_mlp" ? ProjectionActivation::Silu : ProjectionActivation::GeluTanh);
    }
  }
  if (parts) {
    parts->nodes = {index};
    parts->module = node.module;
  }
  return parts;
}

Result<Node> projection_node(const Graph& graph, const UseMap& uses, const ProjectionParts& parts) {
  Node node = HONE_TRY(fused_node(
      graph, uses,
      {parts.nodes, parts.inputs(), parts.outputs, "projection", parts.attributes(), "projection"}));
  node.module = parts.module;
  return node;
}

}  // namespace hone
