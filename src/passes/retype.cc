#include "passes/retype.h"

#include <map>

#include "graph/op_row.h"
#include "graph/rewrite.h"

namespace hone {
namespace {

// What to do with a reader of a value of the new type.
enum class Reader { ReadsIt, View, Attention, NeedsCast };

// Rows of blocks have no views but those that no cache takes, and a product reads them as a weight alone.
Reader reader_kind(const Node& node, std::size_t operand, DType dtype) {
  if (dtype_row(dtype).is_quantised) {
    if (node.op == "cast") return Reader::ReadsIt;
    return node.op == "attention" && (operand == 1 || operand == 2) ? Reader::Attention : Reader::NeedsCast;
  }
  const OpRow* row = find_op(node.op);
  if (row != nullptr && row->op_class == OpClass::View) return Reader::View;
  if (node.op == "cast" || (node.op == "matmul" && operand == 1)) return Reader::ReadsIt;
  if (node.op == "attention" && (operand == 1 || operand == 2)) return Reader::Attention;
  return Reader::NeedsCast;
}

Node cast_node(ValueId from, ValueId to, DType dtype, const std::string& module) {
  Node node;
  node.op = "cast";
  node.inputs = {from};
  node.outputs = {to};
  node.attributes.set("to", std::string(dtype_name(dtype)));
  node.module = module;
  return node;
}

class Retyper {
 public:
  Retyper(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype), changed_(graph.values.size(), false) {}

  Status run(std::span<const ValueId> values) {
    for (const ValueId value : values) change(value);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::size_t operands = graph_.nodes[n].inputs.size();
      for (std::size_t i = 0; i < operands; ++i) {
        const ValueId input = graph_.nodes[n].inputs[i];
        if (is_changed(input)) HONE_TRY(visit(static_cast<int>(n), i));
      }
    }
    for (GraphOutput& output : graph_.outputs) {
      if (is_changed(output.value))
        output.value = widened(output.value, static_cast<int>(graph_.nodes.size()), {});
    }
    insert_before(graph_, std::move(added_));
    return {};
  }

 private:
  void change(ValueId value) {
    graph_.values[static_cast<std::size_t>(value)].type.dtype = dtype_;
    changed_[static_cast<std::size_t>(value)] = true;
  }
  bool is_changed(ValueId value) const {
    const auto v = static_cast<std::size_t>(value);
    return v < changed_.size() && changed_[v];
  }
  Status visit(int index, std::size_t operand) {
    Node& node = graph_.nodes[static_cast<std::size_t>(index)];
    switch (reader_kind(node, operand, dtype_)) {
      case Reader::ReadsIt:
        return {};
      case Reader::View:
        change(node.outputs[0]);
        return {};
      case Reader::Attention: {
        if (node.body == nullptr) return internal_error("retype", "an attention without body");
        Graph body = *node.body;
        const ValueId inner[] = {body.inputs[operand].value};
        HONE_TRY(retype_values(body, inner, dtype_));
        node.body = std::make_shared<const Graph>(std::move(body));
        return {};
      }
      case Reader::NeedsCast:
        break;
    }
    node.inputs[operand] = widened(node.inputs[operand], index, node.module);
    return {};
  }
  // `narrow` cast back to f32, once, in front of its first reader.
  ValueId widened(ValueId narrow, int reader, const std::string& module) {
    const auto [found, is_new] = widened_.emplace(narrow, -1);
    if (is_new) {
      found->second = graph_.add_value({DType::F32, graph_.type(narrow).shape});
      added_.emplace_back(reader, cast_node(narrow, found->second, DType::F32, module));
    }
    return found->second;
  }

  Graph& graph_;
  DType dtype_;
  std::vector<bool> changed_;
  std::map<ValueId, ValueId> widened_;
  std::vector<std::pair<int, Node>> added_;
};

}  // namespace

Status retype_values(Graph& graph, std::span<const ValueId> values, DType dtype) {
  return Retyper(graph, dtype).run(values);
}

}  // namespace hone
