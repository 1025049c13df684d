#include <cmath>
#include <fmt/format.h>

#include "graph/text.h"

namespace hone {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The shortest text that reads back to the same double, and never looks like an integer.
std::string real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

template <class T, class Format>
std::string list(std::string_view kind, const std::vector<T>& items, Format format) {
  std::string out = fmt::format("{}[", kind);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    out += format(items[i]);
  }
  return out + "]";
}

struct ValueText {
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return real(value); }
  std::string operator()(const std::string& value) const { return in_quotes(value); }
  std::string operator()(const std::vector<std::int64_t>& values) const {
    return list("ints", values, *this);
  }
  std::string operator()(const std::vector<double>& values) const { return list("reals", values, *this); }
  std::string operator()(const std::vector<Dim>& values) const {
    return list("dims", values, [](const Dim& dim) { return dim.to_string(); });
  }
};

void print_body(const Graph& graph, int depth, std::string& out);

void print_node(const Graph& graph, const Node& node, int depth, std::string& out) {
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (i > 0) out += ", ";
    out +=
        fmt::format("{}: {}", graph.value_name(node.outputs[i]), type_to_string(graph.type(node.outputs[i])));
  }
  out += fmt::format(" = {}(", node.op);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0) out += ", ";
    out += graph.value_name(node.inputs[i]);
  }
  out += ')';
  if (!node.attributes.empty()) out += ' ' + print_attributes(node.attributes);
  if (!node.module.empty()) out += fmt::format(" @{}", in_quotes(node.module));
  if (node.body != nullptr) {
    out += " body ";
    print_body(*node.body, depth, out);
  }
  out += '\n';
}

// From the name to the closing brace.
void print_body(const Graph& graph, int depth, std::string& out) {
  const std::string indent(static_cast<std::size_t>(depth + 1) * 2, ' ');
  out += in_quotes(graph.name) + " symbols(";
  for (std::size_t i = 0; i < graph.symbols.size(); ++i) {
    if (i > 0) out += ", ";
    out += graph.symbols[i];
  }
  out += ") {\n";
  constexpr std::string_view kKinds[] = {"input", "weight", "state"};
  for (const GraphInput& input : graph.inputs) {
    out += fmt::format("{}{} {} {}: {}\n", indent, kKinds[static_cast<std::size_t>(input.kind)],
                       graph.value_name(input.value), in_quotes(input.name),
                       type_to_string(graph.type(input.value)));
  }
  for (const Node& node : graph.nodes) print_node(graph, node, depth + 1, out);
  for (const GraphOutput& output : graph.outputs) {
    out += fmt::format("{}output {} {}\n", indent, in_quotes(output.name), graph.value_name(output.value));
  }
  for (const GraphOutput& update : graph.state_updates) {
    out += fmt::format("{}update {} {}\n", indent, in_quotes(update.name), graph.value_name(update.value));
  }
  out.append(static_cast<std::size_t>(depth) * 2, ' ');
  out += '}';
}

}  // namespace

std::string print_attributes(const Attributes& attributes) {
  std::string out;
  for (const Attributes::Item& item : attributes.items()) {
    out += out.empty() ? "{" : ", ";
    out += fmt::format("{} = {}", item.first, std::visit(ValueText{}, item.second));
  }
  return out.empty() ? out : out + "}";
}

std::string print_graph(const Graph& graph) {
  std::string out = "graph ";
  print_body(graph, 0, out);
  return out + "\n";
}

}  // namespace hone
