#include "apps/explain/dot.h"

#include <fmt/format.h>
#include <unordered_map>

#include "apps/explain/escape.h"
#include "apps/units.h"
#include "graph/cost.h"
#include "graph/text.h"

namespace hone {
namespace {

constexpr std::size_t kLabelWidth = 60;

constexpr std::string_view kHeader = R"(  compound=true;
  rankdir=TB;
  nodesep=0.3;
  ranksep=0.35;
  bgcolor="white";
  fontname="Helvetica";
  fontsize=10;
  node [shape=box, style="rounded,filled", fillcolor="#dbe9fb", color="#5b7fb0", fontname="Helvetica", fontsize=10, margin="0.12,0.06"];
  edge [color="#7a7f87", fontname="Helvetica", fontsize=8, fontcolor="#4c5158", arrowsize=0.6];
)";

std::string input_style(InputKind kind) {
  switch (kind) {
    case InputKind::Weight:
      return R"(shape=note, style=filled, fillcolor="#fdf3d3", color="#b89b45")";
    case InputKind::State:
      return R"(shape=cylinder, style=filled, fillcolor="#dcf2df", color="#5c9a66")";
    case InputKind::Input:
      break;
  }
  return R"(shape=ellipse, style=filled, fillcolor="#eeeeee", color="#888888")";
}

// Its number, or how many it has.
std::string constant_label(const Node& node) {
  const auto* values = node.attributes.get<std::vector<double>>("values");
  if (values == nullptr) return "constant";
  return values->size() == 1 ? fmt::format("{}", values->front()) : fmt::format("{} numbers", values->size());
}

// Graphviz takes minutes for more, and gives up on some.
constexpr std::size_t kMostDrawn = 800;

constexpr std::size_t kMostReaders = 8;

// Nodes, those of bodies included.
std::size_t drawn_nodes(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes) count += node.body == nullptr ? 1 : drawn_nodes(*node.body);
  return count;
}

// One graph, and the bodies in it. A value's source is the DOT node that an edge of it begins at.
class DotWriter {
 public:
  DotWriter(const std::vector<NodeRow>& rows, bool bodies) : bodies_(bodies) {
    for (const NodeRow& row : rows) rows_[row.value] = &row;
  }

  std::string write(const Graph& graph) {
    out_ = fmt::format("digraph \"{}\" {{\n{}", dot_text(graph.name), kHeader);
    if (!bodies_) out_ += "  nslimit=3;\n  nslimit1=3;\n  mclimit=0.3;\n  splines=polyline;\n";
    Sources sources(graph.values.size());
    if (!bodies_) find_far_read(graph);
    for (const GraphInput& input : graph.inputs) {
      const std::string label =
          fmt::format("{}\n{}", clipped(input.name, kLabelWidth), graph.value_name(input.value));
      sources[static_cast<std::size_t>(input.value)] = add_node(label, input_style(input.kind), 1);
    }
    for (const Node& node : graph.nodes) add(graph, node, sources, 1);
    for (const auto* list : {&graph.outputs, &graph.state_updates}) {
      const std::string style = input_style(list == &graph.outputs ? InputKind::Input : InputKind::State);
      for (const GraphOutput& output : *list) {
        const std::string id = add_node(clipped(output.name, kLabelWidth), style, 1);
        add_edge(graph, output.value, sources, id, 1, true);
      }
    }
    return std::move(out_) + "}\n";
  }

 private:
  using Sources = std::vector<std::string>;  // per value

  // Long edges to every layer would make up most of a large drawing.
  void find_far_read(const Graph& graph) {
    const UseMap uses(graph);
    far_read_.resize(graph.values.size());
    for (std::size_t v = 0; v < graph.values.size(); ++v) far_read_[v] = uses.users[v].size() > kMostReaders;
  }

  std::string add_node(std::string_view label, std::string_view style, int depth) {
    std::string id = fmt::format("n{}", next_++);
    line(depth, fmt::format("{} [label=\"{}\"{}{}];", id, dot_text(label), style.empty() ? "" : ", ", style));
    return id;
  }

  void add_edge(const Graph& graph, ValueId value, const Sources& sources, const std::string& to, int depth,
                bool with_type) {
    std::string from = sources[static_cast<std::size_t>(value)];
    if (from.empty()) return;
    if (!far_read_.empty() && far_read_[static_cast<std::size_t>(value)]) {
      from = add_node(graph.value_name(value), R"(shape=plaintext, style="")", depth);
    }
    const std::string label =
        with_type ? fmt::format(" [label=\"{}\"]", dot_text(type_to_string(graph.type(value)))) : "";
    line(depth, fmt::format("{} -> {}{};", from, to, label));
  }

  // The lines of a node's box: op and value, module, kernel, cost.
  std::string label(const Graph& graph, const Node& node, bool inside) const {
    if (node.op == "constant") return constant_label(node);
    std::string out = fmt::format("{}  {}", node.op, graph.value_name(node.outputs[0]));
    const std::string attributes = print_attributes(node.attributes);
    if (!attributes.empty()) out += "\n" + clipped(attributes, kLabelWidth);
    if (inside) return out;
    if (!node.module.empty()) out += "\n" + clipped(node.module, kLabelWidth);
    const auto found = rows_.find(graph.value_name(node.outputs[0]));
    if (found == rows_.end() || found->second->step < 0) return out;
    const NodeRow& row = *found->second;
    return out + fmt::format("\nstep {}: {}\n{}, {}", row.step, row.kernel, human_bytes(row.bytes),
                             human_operations(row.operations));
  }

  void add(const Graph& graph, const Node& node, Sources& sources, int depth) {
    const bool inside = depth > 1;
    if (node.body != nullptr && bodies_) {
      add_body(graph, node, sources, depth);
      return;
    }
    std::string_view style;
    if (node.op == "constant") {
      style = R"(shape=plaintext, style="", fontsize=9)";
    } else if (!is_launch(node)) {
      style = R"(style="rounded,filled,dashed", fillcolor="#ffffff")";
    } else if (inside) {
      style = R"(fillcolor="#ffffff")";
    }
    const std::string id = add_node(label(graph, node, inside), style, depth);
    for (const ValueId value : node.inputs) add_edge(graph, value, sources, id, depth, true);
    for (const ValueId value : node.outputs) sources[static_cast<std::size_t>(value)] = id;
  }

  // A cluster; each input of the body is a small ring in it, its outputs are what its nodes write.
  void add_body(const Graph& graph, const Node& node, Sources& sources, int depth) {
    const Graph& body = *node.body;
    line(depth, fmt::format("subgraph cluster_{} {{", next_++));
    line(depth + 1,
         fmt::format(R"(label="{}"; labeljust=l; style="rounded,filled"; color="#5b7fb0"; fillcolor="{}";)",
                     dot_text(label(graph, node, depth > 1) + "\n", "\\l"),
                     depth > 1 ? "#c9ddf7" : "#dbe9fb"));
    Sources inner(body.values.size());
    std::vector<std::string> ports;
    for (const GraphInput& input : body.inputs) {
      ports.push_back(add_node(input.name,
                               R"(shape=circle, fixedsize=true, width=0.2, fontsize=7, fillcolor="#ffffff")",
                               depth + 1));
      inner[static_cast<std::size_t>(input.value)] = ports.back();
    }
    for (const Node& part : body.nodes) add(body, part, inner, depth + 1);
    line(depth, "}");
    for (std::size_t i = 0; i < ports.size() && i < node.inputs.size(); ++i) {
      add_edge(graph, node.inputs[i], sources, ports[i], depth, true);
    }
    for (std::size_t i = 0; i < node.outputs.size() && i < body.outputs.size(); ++i) {
      sources[static_cast<std::size_t>(node.outputs[i])] =
          inner[static_cast<std::size_t>(body.outputs[i].value)];
    }
  }

  void line(int depth, std::string_view text) {
    out_.append(static_cast<std::size_t>(depth) * 2, ' ');
    out_ += text;
    out_ += '\n';
  }

  bool bodies_;
  std::vector<bool> far_read_;  // per value; large graphs: each reader has a label of its own for it
  std::unordered_map<std::string, const NodeRow*> rows_;
  std::string out_;
  int next_ = 0;
};

}  // namespace

bool draws_bodies(const Graph& graph) {
  return drawn_nodes(graph) <= kMostDrawn;
}

std::string graph_dot(const Graph& graph, const std::vector<NodeRow>& rows) {
  return DotWriter(rows, draws_bodies(graph)).write(graph);
}

}  // namespace hone
