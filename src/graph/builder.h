// Builds a graph node by node, inferring each type. The first error stops everything after it and comes out
// of finish(): a model file reads as the paper's formulas, without a check on each line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

class GraphBuilder {
 public:
  GraphBuilder(std::string name, std::string symbols);

  // Names the module of the nodes added while it lives; nests: "layers.3" + "attn".
  class Scope {
   public:
    Scope(GraphBuilder& builder, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GraphBuilder& builder_;
    std::size_t length_;
  };

  ValueId input(std::string name, Type type);
  ValueId weight(std::string name, Type type);
  ValueId state(std::string name, Type type);
  void output(std::string name, ValueId value);
  // The state `name` after the step: the result of its append.
  void update(std::string name, ValueId value);

  // Any op by name; the first output.
  ValueId node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});

  ValueId constant(DType dtype, std::vector<double> values, Shape shape);
  ValueId scalar(double value, DType dtype = DType::F32) { return constant(dtype, {value}, {}); }
  ValueId iota(Shape shape, std::int64_t axis);
  ValueId cast(ValueId x, DType to);
  ValueId add(ValueId a, ValueId b) { return node("add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return node("sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return node("mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return node("div", {a, b}); }
  ValueId select(ValueId condition, ValueId a, ValueId b) { return node("select", {condition, a, b}); }
  ValueId reduce(std::string_view op, ValueId x, std::int64_t axis);  // keeps the axis, with extent 1
  ValueId matmul(ValueId a, ValueId b) { return node("matmul", {a, b}); }
  ValueId matmul_transposed(ValueId a, ValueId b);  // b is [..,N,K]
  ValueId reshape(ValueId x, Shape shape);
  ValueId permute(ValueId x, std::vector<std::int64_t> axes);
  ValueId slice(ValueId x, std::int64_t axis, const Dim& begin, const Dim& end);
  ValueId concat(std::vector<ValueId> parts, std::int64_t axis);

  const Shape& shape(ValueId value) const { return graph_.type(value).shape; }
  const Type& type(ValueId value) const { return graph_.type(value); }
  bool failed() const { return error_.has_value(); }

  Result<Graph> finish();

 private:
  ValueId add_input(std::string name, Type type, InputKind kind);

  Graph graph_;
  std::string module_;
  std::optional<Error> error_;
};

}  // namespace hone
