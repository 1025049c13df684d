#include "passes/fold_norm.h"

#include <algorithm>

#include "graph/body_builder.h"
#include "passes/match.h"
#include "passes/projection_parts.h"

namespace hone {
namespace {

// One place where a norm folds away.
struct Fold {
  int source = -1;  // the projection that makes x
  int norm = -1;
  std::vector<int> readers;
};

const Node& node_at(const Graph& graph, int index) {
  return graph.nodes[static_cast<std::size_t>(index)];
}

// The projection that makes x alone, in f32 and in whole blocks.
bool is_source(const Graph& graph, const ProjectionParts& parts) {
  if (parts.sections.size() != 1 || parts.outputs.size() != 1 || parts.sections[0].state >= 0 ||
      parts.sections[0].next_norm >= 0 || parts.sections[0].cosine >= 0)
    return false;
  const Type& x = graph.type(parts.outputs[0]);
  const std::optional<std::int64_t> columns = last_extent(x.shape);
  return x.dtype == DType::F32 && x.shape.size() == 3 && columns && *columns % kSquaresBlock == 0;
}

bool appends(const ProjectionParts& parts) {
  return std::any_of(parts.sections.begin(), parts.sections.end(),
                     [](const ProjectionSection& section) { return section.state >= 0; });
}

// True if a section reads x as it is: behind its product, the norm would be needed.
bool reads_x_otherwise(const ProjectionParts& parts) {
  return std::any_of(parts.sections.begin(), parts.sections.end(), [&](const ProjectionSection& section) {
    return section.residual == parts.x || section.cosine == parts.x || section.sine == parts.x;
  });
}

std::optional<Fold> match_fold(const Graph& graph, const UseMap& uses, const std::set<ValueId>& weights,
                               int index) {
  const Node& norm = node_at(graph, index);
  if (norm.op != "rms_norm" || !weights.contains(norm.inputs[1])) return std::nullopt;
  Fold fold;
  fold.norm = index;
  fold.source = uses.producer[static_cast<std::size_t>(norm.inputs[0])];
  if (fold.source < 0 || node_at(graph, fold.source).op != "projection") return std::nullopt;
  const std::optional<ProjectionParts> source = projection_parts(graph, weights, fold.source);
  if (!source || !is_source(graph, *source)) return std::nullopt;
  const auto result = static_cast<std::size_t>(norm.outputs[0]);
  if (uses.escapes[result] || uses.users[result].empty()) return std::nullopt;
  for (const int user : uses.users[result]) {
    const std::optional<ProjectionParts> reader = projection_parts(graph, weights, user);
    if (!reader || reader->x != norm.outputs[0] || reader->row_sums >= 0 || appends(*reader) ||
        reads_x_otherwise(*reader))
      return std::nullopt;
    fold.readers.push_back(user);
  }
  return fold;
}

// The source with x * w and the sums of squares as further results.
Status extend_source(Graph& graph, const std::set<ValueId>& weights, const Fold& fold, ValueId scaled,
                     ValueId sums) {
  const Node& norm = node_at(graph, fold.norm);
  Node& source = graph.nodes[static_cast<std::size_t>(fold.source)];
  ProjectionParts parts = *projection_parts(graph, weights, fold.source);
  parts.sections[0].next_norm = norm.inputs[1];
  parts.next_offset = norm.attributes.real("offset");
  Graph body = *source.body;
  const ValueId x = body.outputs[0].value;
  const Shape shape = body.type(x).shape;
  BodyBuilder builder(body);
  // inputs() numbers the operands of a section in the order of its fields, row_sums last.
  const std::vector<ValueId> inputs = parts.inputs();
  const auto at = std::find(inputs.begin(), inputs.end(), norm.inputs[1]) - inputs.begin();
  const bool is_new = inputs.size() > source.inputs.size();
  ValueId factor = -1;
  if (is_new) {
    factor = builder.input(graph.type(norm.inputs[1]));
    std::rotate(body.inputs.begin() + at, body.inputs.end() - 1, body.inputs.end());
  } else {
    factor = body.inputs[static_cast<std::size_t>(at)].value;
  }
  if (parts.next_offset != 0) {
    const ValueId offset = HONE_TRY(builder.scalar(parts.next_offset));
    factor = HONE_TRY(builder.add("add", {factor, offset}));
  }
  ValueId product = HONE_TRY(builder.add("mul", {x, factor}));
  const Type& scaled_type = graph.type(scaled);
  if (scaled_type.dtype == DType::Q8A) {
    Attributes attributes;
    if (scaled_type.shape.size() > shape.size()) attributes.set("terms", std::int64_t{2});
    product = HONE_TRY(builder.add("quantize_q8a", {product}, std::move(attributes)));
  } else if (scaled_type.dtype != DType::F32) {
    product = HONE_TRY(builder.add("cast", {product}, {{"to", std::string(dtype_name(scaled_type.dtype))}}));
  }
  const ValueId squares = HONE_TRY(builder.add("mul", {x, x}));
  Shape blocks = shape;
  blocks.back() = Dim(*shape.back().as_constant() / kSquaresBlock);
  blocks.push_back(Dim(kSquaresBlock));
  const ValueId blocked = HONE_TRY(builder.add("reshape", {squares}, {{"shape", std::move(blocks)}}));
  const ValueId summed = HONE_TRY(
      builder.add("reduce_sum", {blocked}, {{"axis", std::int64_t{-1}}, {"keep_dims", std::int64_t{0}}}));
  builder.put_last();
  builder.output(product);
  builder.output(summed);
  source.inputs = inputs;
  source.outputs.push_back(scaled);
  source.outputs.push_back(sums);
  parts.outputs = source.outputs;
  source.attributes = parts.attributes();
  source.body = std::make_shared<const Graph>(std::move(body));
  return {};
}

// A body that reads rounded rows reads f32 ones.
void widen_input(Graph& body, ValueId x) {
  body.values[static_cast<std::size_t>(x)].type.dtype = DType::F32;
  for (Node& node : body.nodes) {
    if (node.body == nullptr || node.inputs[0] != x) continue;
    Graph inner = *node.body;
    widen_input(inner, inner.inputs[0].value);
    node.body = std::make_shared<const Graph>(std::move(inner));
  }
}

// The body's sums of the two terms of x [..,2,K].
std::vector<ValueId> sums_of_terms(const Graph& body, ValueId x) {
  std::vector<ValueId> casts;
  std::vector<ValueId> sums;
  for (const Node& node : body.nodes) {
    const auto reads = [&](const std::vector<ValueId>& values) {
      return std::find(values.begin(), values.end(), node.inputs.empty() ? -1 : node.inputs[0]) !=
             values.end();
    };
    if (node.op == "cast" && node.inputs[0] == x) casts.push_back(node.outputs[0]);
    if (node.op == "reduce_sum" && reads(casts)) sums.push_back(node.outputs[0]);
  }
  return sums;
}

// `made`, a projection of the norm, as one of `scaled` with the rows' factors behind its products.
Status rescale_reader(Graph& graph, const Node& norm, ProjectionParts parts, Node& made, ValueId scaled,
                      ValueId sums) {
  Graph body = *made.body;
  const ValueId x = body.inputs[0].value;
  const Type x_type = body.type(x);
  const auto columns = static_cast<double>(*x_type.shape.back().as_constant());
  // What the products read now: x, or each the sum of its terms.
  std::vector<ValueId> rows{x};
  if (parts.terms == 2) {
    rows = sums_of_terms(body, x);
  } else {
    widen_input(body, x);
    body.inputs[0].value = body.add_value(x_type);
  }
  BodyBuilder builder(body);
  ValueId wide = body.inputs[0].value;
  const ValueId parts_of_sum = builder.input(graph.type(sums));
  if (x_type.dtype != DType::F32) wide = HONE_TRY(builder.add("cast", {wide}, {{"to", std::string("f32")}}));
  if (parts.terms == 2) {
    wide = HONE_TRY(
        builder.add("reduce_sum", {wide}, {{"axis", std::int64_t{-2}}, {"keep_dims", std::int64_t{0}}}));
  }
  const ValueId sum = HONE_TRY(builder.add("reduce_sum", {parts_of_sum},
                                           {{"axis", std::int64_t{-1}}, {"keep_dims", std::int64_t{1}}}));
  const ValueId count = HONE_TRY(builder.scalar(columns));
  const ValueId eps = HONE_TRY(builder.scalar(norm.attributes.real("eps")));
  const ValueId mean = HONE_TRY(builder.add("div", {sum, count}));
  const ValueId shifted = HONE_TRY(builder.add("add", {mean, eps}));
  const ValueId root = HONE_TRY(builder.add("rsqrt", {shifted}));
  const ValueId normed = HONE_TRY(builder.add("mul", {wide, root}));
  // The products read the normed rows in their place; what made them is read by nobody then.
  for (const ValueId row : rows) {
    for (Node& node : body.nodes) std::replace(node.inputs.begin(), node.inputs.end(), row, normed);
  }
  if (parts.terms == 2) remove_dead_nodes(body);
  builder.put_first();
  parts.x = scaled;
  parts.row_sums = sums;
  parts.eps = norm.attributes.real("eps");
  made.inputs = parts.inputs();
  made.attributes = parts.attributes();
  made.body = std::make_shared<const Graph>(std::move(body));
  return {};
}

Status apply(Graph& graph, const std::set<ValueId>& weights, const Fold& fold) {
  const UseMap uses(graph);
  const Node norm = node_at(graph, fold.norm);
  const Type scaled_type = graph.type(norm.outputs[0]);
  Shape blocks = graph.type(norm.inputs[0]).shape;
  blocks.back() = Dim(*blocks.back().as_constant() / kSquaresBlock);
  const ValueId scaled = graph.add_value(scaled_type);
  const ValueId sums = graph.add_value({DType::F32, std::move(blocks)});
  for (const int index : fold.readers) {
    // Read again: as the source of an earlier fold it may have changed.
    const ProjectionParts parts = *projection_parts(graph, weights, index);
    Node made = HONE_TRY(projection_node(graph, uses, parts));
    HONE_TRY(rescale_reader(graph, norm, parts, made, scaled, sums));
    graph.nodes[static_cast<std::size_t>(index)] = std::move(made);
  }
  return extend_source(graph, weights, fold, scaled, sums);
}

}  // namespace

Status fold_norm(Graph& graph, const PassContext& context) {
  const UseMap uses(graph);
  const std::set<ValueId> weights = weight_values(graph);
  std::vector<Fold> folds;
  for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
    std::optional<Fold> fold = match_fold(graph, uses, weights, n);
    // x may have two norms; the first to be found is folded.
    const auto same_source = [&](const Fold& other) { return other.source == fold->source; };
    if (fold && std::none_of(folds.begin(), folds.end(), same_source)) folds.push_back(std::move(*fold));
  }
  for (const Fold& fold : folds) HONE_TRY(apply(graph, weights, fold));
  context.fired("rms_norm", static_cast<std::int64_t>(folds.size()));
  if (!folds.empty()) remove_dead_nodes(graph);
  return {};
}

}  // namespace hone
