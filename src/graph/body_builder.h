// Extends the body of a fused node: what passes use that change what a launch takes or gives.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"
#include "graph/op_row.h"

namespace hone {

// Adds nodes to a body, each with the types that its row gives, and puts them in front of or behind those
// that are there.
class BodyBuilder {
 public:
  explicit BodyBuilder(Graph& body) : body_(body) {}

  Result<ValueId> add(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    const std::vector<Type> types = HONE_TRY(infer_types(body_, node));
    node.outputs = {body_.add_value(types[0])};
    const ValueId made = node.outputs[0];
    nodes_.push_back(std::move(node));
    return made;
  }
  Result<ValueId> scalar(double value) {
    return add("constant", {},
               {{"dtype", std::string("f32")},
                {"shape", std::vector<Dim>{}},
                {"values", std::vector<double>{value}}});
  }
  ValueId input(const Type& type) {
    const ValueId value = body_.add_value(type);
    body_.inputs.push_back({std::to_string(body_.inputs.size()), InputKind::Input, value});
    return value;
  }
  void output(ValueId value) { body_.outputs.push_back({std::to_string(body_.outputs.size()), value}); }
  void put_last() { body_.nodes.insert(body_.nodes.end(), nodes_.begin(), nodes_.end()); }
  void put_first() { body_.nodes.insert(body_.nodes.begin(), nodes_.begin(), nodes_.end()); }

 private:
  Graph& body_;
  std::vector<Node> nodes_;
};

}  // namespace hone
