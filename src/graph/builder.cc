#include "graph/builder.h"

#include "graph/op_row.h"
#include "graph/verify.h"

namespace hone {

GraphBuilder::GraphBuilder(std::string name, std::string symbols) {
  graph_.name = std::move(name);
  graph_.symbols = std::move(symbols);
}

GraphBuilder::Scope::Scope(GraphBuilder& builder, std::string_view name)
    : builder_(builder), length_(builder.module_.size()) {
  if (!builder.module_.empty()) builder.module_ += '.';
  builder.module_ += name;
}

GraphBuilder::Scope::~Scope() {
  builder_.module_.resize(length_);
}

ValueId GraphBuilder::add_input(std::string name, Type type, InputKind kind) {
  const ValueId value = graph_.add_value(std::move(type));
  graph_.inputs.push_back({std::move(name), kind, value});
  return value;
}

ValueId GraphBuilder::input(std::string name, Type type) {
  return add_input(std::move(name), std::move(type), InputKind::Input);
}
ValueId GraphBuilder::weight(std::string name, Type type) {
  if (const GraphInput* known = graph_.find_input(name)) return known->value;
  return add_input(std::move(name), std::move(type), InputKind::Weight);
}
ValueId GraphBuilder::state(std::string name, Type type) {
  return add_input(std::move(name), std::move(type), InputKind::State);
}
void GraphBuilder::output(std::string name, ValueId value) {
  graph_.outputs.push_back({std::move(name), value});
}
void GraphBuilder::update(std::string name, ValueId value) {
  graph_.state_updates.push_back({std::move(name), value});
}

ValueId GraphBuilder::node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  if (error_) return 0;
  Node made;
  made.op = op;
  made.inputs = std::move(inputs);
  made.attributes = std::move(attributes);
  made.module = module_;
  Result<std::vector<Type>> types = infer_types(graph_, made);
  if (!types.ok()) {
    error_ = std::move(types).error();
    return 0;
  }
  for (Type& type : types.value()) made.outputs.push_back(graph_.add_value(std::move(type)));
  const ValueId first = made.outputs.front();
  graph_.nodes.push_back(std::move(made));
  return first;
}

ValueId GraphBuilder::constant(DType dtype, std::vector<double> values, Shape shape) {
  Attributes attributes;
  attributes.set("dtype", std::string(dtype_name(dtype)));
  attributes.set("shape", std::move(shape));
  attributes.set("values", std::move(values));
  return node("constant", {}, std::move(attributes));
}

ValueId GraphBuilder::iota(Shape shape, std::int64_t axis) {
  return node("iota", {}, {{"axis", axis}, {"shape", std::move(shape)}});
}

ValueId GraphBuilder::cast(ValueId x, DType to) {
  return node("cast", {x}, {{"to", std::string(dtype_name(to))}});
}

ValueId GraphBuilder::reduce(std::string_view op, ValueId x, std::int64_t axis) {
  return node(op, {x}, {{"axis", axis}, {"keep_dims", std::int64_t{1}}});
}

ValueId GraphBuilder::matmul_transposed(ValueId a, ValueId b) {
  return node("matmul", {a, b}, {{"transpose_b", std::int64_t{1}}});
}

ValueId GraphBuilder::reshape(ValueId x, Shape shape) {
  return node("reshape", {x}, {{"shape", std::move(shape)}});
}

ValueId GraphBuilder::permute(ValueId x, std::vector<std::int64_t> axes) {
  return node("permute", {x}, {{"axes", std::move(axes)}});
}

ValueId GraphBuilder::slice(ValueId x, std::int64_t axis, const Dim& begin, const Dim& end) {
  return node("slice", {x}, {{"axis", axis}, {"range", std::vector<Dim>{begin, end}}});
}

ValueId GraphBuilder::concat(std::vector<ValueId> parts, std::int64_t axis) {
  return node("concat", std::move(parts), {{"axis", axis}});
}

Result<Graph> GraphBuilder::finish() {
  if (error_) return *error_;
  HONE_TRY(verify(graph_, "building"));
  return std::move(graph_);
}

}  // namespace hone
