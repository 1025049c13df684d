#include "passes/fuse_epilogue.h"

#include <algorithm>

#include "graph/op_row.h"
#include "passes/activation.h"
#include "passes/projection_parts.h"

namespace hone {
namespace {

// Walks from a product to what follows it, as long as each value has one reader.
class Epilogue {
 public:
  Epilogue(const Graph& graph, const UseMap& uses, const std::set<ValueId>& weights, ProjectionParts product)
      : graph_(graph),
        uses_(uses),
        weights_(weights),
        parts_(std::move(product)),
        value_(parts_.outputs[0]) {}

  // The product with what follows it, or nullopt if nothing does.
  std::optional<ProjectionParts> grow() {
    const std::size_t alone = parts_.nodes.size();
    take_bias();
    take_activation();
    if (!take_residual() && !take_heads()) take_quantise();
    if (parts_.nodes.size() == alone) return std::nullopt;
    parts_.outputs = {value_};
    return parts_;
  }

 private:
  ProjectionSection& section() { return parts_.sections.front(); }

  // The one reader of `value` if its op is `op`; -1 otherwise.
  int reader(ValueId value, std::string_view op) const {
    const auto v = static_cast<std::size_t>(value);
    if (uses_.escapes[v] || uses_.users[v].size() != 1) return -1;
    const int index = uses_.users[v].front();
    return node(index).op == op ? index : -1;
  }
  const Node& node(int index) const { return graph_.nodes[static_cast<std::size_t>(index)]; }
  void take(int index) {
    parts_.nodes.push_back(index);
    value_ = node(index).outputs[0];
  }
  // The other operand of an addition that reads `value_`, and the addition; -1 if there is none.
  std::pair<int, ValueId> addition() const {
    const int index = reader(value_, "add");
    if (index < 0) return {-1, -1};
    const std::vector<ValueId>& inputs = node(index).inputs;
    if (inputs[0] == inputs[1]) return {-1, -1};
    return {index, inputs[0] == value_ ? inputs[1] : inputs[0]};
  }

  void take_bias() {
    if (section().gate >= 0) return;
    const auto [index, bias] = addition();
    if (index < 0 || !weights_.contains(bias)) return;
    const Type& type = graph_.type(bias);
    if (type.dtype != DType::F32 || type.shape.size() != 1 ||
        !(type.shape[0] == graph_.type(value_).shape.back()))
      return;
    section().bias = bias;
    take(index);
  }

  // silu or gelu of the value, which several of its nodes read, and nothing else does.
  void take_activation() {
    if (section().gate >= 0 || uses_.escapes[static_cast<std::size_t>(value_)]) return;
    constexpr std::pair<Activation, ProjectionActivation> kMatches[] = {
        {match_silu, ProjectionActivation::Silu}, {match_gelu, ProjectionActivation::GeluTanh}};
    for (const int last : elementwise_readers()) {
      for (const auto& [match, activation] : kMatches) {
        Pattern pattern(graph_, uses_);
        const ValueId result = node(last).outputs[0];
        if (match(pattern, result) != std::optional(value_)) continue;
        std::vector<int> nodes = parts_.nodes;
        nodes.insert(nodes.end(), pattern.nodes().begin(), pattern.nodes().end());
        const ValueId outputs[] = {result};
        if (!only_outputs_escape(graph_, uses_, nodes, outputs)) continue;
        section().activation = static_cast<std::int64_t>(activation);
        parts_.nodes = std::move(nodes);
        value_ = result;
        return;
      }
    }
  }

  // What the value reaches through few elementwise nodes.
  std::vector<int> elementwise_readers() const {
    constexpr std::size_t kMost = 16;
    std::vector<int> found;
    std::vector<ValueId> values{value_};
    for (std::size_t i = 0; i < values.size() && found.size() < kMost; ++i) {
      for (const int user : uses_.users[static_cast<std::size_t>(values[i])]) {
        const OpRow* row = find_op(node(user).op);
        if (row == nullptr || row->op_class != OpClass::Elementwise || std::ranges::count(found, user) != 0)
          continue;
        found.push_back(user);
        values.push_back(node(user).outputs[0]);
      }
    }
    return found;
  }

  bool take_residual() {
    const auto [index, residual] = addition();
    if (index < 0 || !(graph_.type(residual) == graph_.type(value_)) ||
        graph_.type(value_).dtype != DType::F32)
      return false;
    section().residual = residual;
    take(index);
    return true;
  }

  // The axes of the columns become heads, which are turned, or stored into a state, or both.
  bool take_heads() {
    const int heads = reader(value_, "reshape");
    if (heads < 0 || section().gate >= 0 || !keeps_rows(node(heads))) return false;
    const ValueId rows = node(heads).outputs[0];
    const int norm = head_norm(rows);
    const ValueId normed = norm < 0 ? rows : node(norm).outputs[0];
    const int rope = reader(normed, "rope");
    const bool turned = rope >= 0 && node(rope).inputs[0] == normed && is_tile(graph_.type(rows));
    // A norm that no rope follows stays: a tile is a head only where there is one.
    const ValueId last = turned ? node(rope).outputs[0] : rows;
    const std::optional<std::vector<int>> stored = appending(last);
    if (!turned && !stored) return false;
    take(heads);
    if (turned && norm >= 0) {
      section().head_norm = node(norm).inputs[1];
      parts_.head_eps = node(norm).attributes.real("eps");
      parts_.head_offset = node(norm).attributes.real("offset");
      take(norm);
    }
    if (turned) {
      section().cosine = node(rope).inputs[1];
      section().sine = node(rope).inputs[2];
      section().interleaved = node(rope).attributes.integer("interleaved");
      section().head = *graph_.type(rows).shape.back().as_constant();
      take(rope);
    }
    if (stored) {
      for (const int index : *stored) take(index);
      section().state = node(stored->back()).inputs[0];
      section().positions = node(stored->back()).inputs[2];
    }
    return true;
  }

  // The norm of the heads `rows` by a weight, or -1.
  int head_norm(ValueId rows) const {
    const int norm = reader(rows, "rms_norm");
    const bool fits = norm >= 0 && node(norm).inputs[0] == rows && weights_.contains(node(norm).inputs[1]) &&
                      graph_.type(node(norm).outputs[0]) == graph_.type(rows);
    return fits ? norm : -1;
  }

  // The append of `value` to a state, and the cast in front of it.
  std::optional<std::vector<int>> appending(ValueId value) const {
    std::vector<int> nodes;
    if (const int cast = reader(value, "cast"); cast >= 0) {
      const DType to = graph_.type(node(cast).outputs[0]).dtype;
      if (to != DType::F16 && to != DType::BF16) return std::nullopt;
      nodes.push_back(cast);
      value = node(cast).outputs[0];
    }
    const int append = reader(value, "state_append");
    if (append < 0 || node(append).inputs[1] != value) return std::nullopt;
    // No projection rounds rows to the blocks of a state of q8_0.
    if (graph_.type(node(append).inputs[0]).dtype != graph_.type(value).dtype) return std::nullopt;
    nodes.push_back(append);
    return nodes;
  }

  void take_quantise() {
    int index = reader(value_, "quantize_q8a");
    if (index < 0) {
      index = reader(value_, "cast");
      if (index >= 0 && graph_.type(node(index).outputs[0]).dtype != DType::BF16) return;
    }
    if (index >= 0) take(index);
  }

  // [B,T,N] -> [B,T,..]
  bool keeps_rows(const Node& reshape) const {
    const Shape& from = graph_.type(reshape.inputs[0]).shape;
    const Shape& to = graph_.type(reshape.outputs[0]).shape;
    return from.size() == 3 && to.size() > 3 && from[0] == to[0] && from[1] == to[1];
  }
  static bool is_tile(const Type& rows) {
    const std::optional<std::int64_t> head = rows.shape.back().as_constant();
    return head && *head % 16 == 0 && *head <= kLargestHead;
  }

  const Graph& graph_;
  const UseMap& uses_;
  const std::set<ValueId>& weights_;
  ProjectionParts parts_;
  ValueId value_;
};

// What has joined a product.
void count_fired(const Graph& graph, const ProjectionParts& parts, const PassContext& context) {
  const ProjectionSection& section = parts.sections.front();
  if (section.bias >= 0) context.fired("bias");
  if (section.gate < 0 && section.activation != 0) context.fired("activation");
  if (section.residual >= 0) context.fired("residual");
  if (section.head_norm >= 0) context.fired("head-norm");
  if (section.cosine >= 0) context.fired("rope");
  if (section.state >= 0) context.fired("append");
  const DType out = graph.type(parts.outputs[0]).dtype;
  if (section.state < 0 && (out == DType::Q8A || out == DType::BF16)) context.fired("quantise");
}

// True if nothing but its product, or its gated product, is in the projection.
bool is_bare(const ProjectionParts& parts) {
  const ProjectionSection& section = parts.sections.front();
  const std::int64_t operands[] = {section.bias,  section.cosine,    section.sine,      section.residual,
                                   section.state, section.positions, section.next_norm, section.head_norm};
  return parts.sections.size() == 1 && parts.row_sums < 0 && (section.gate >= 0 || section.activation == 0) &&
         std::all_of(std::begin(operands), std::end(operands), [](std::int64_t o) { return o < 0; });
}

}  // namespace

Status fuse_epilogue(Graph& graph, const PassContext& context) {
  const UseMap uses(graph);
  const std::set<ValueId> weights = weight_values(graph);
  std::vector<ProjectionParts> found;
  std::vector<bool> taken(graph.nodes.size(), false);
  for (int n = static_cast<int>(graph.nodes.size()); n-- > 0;) {
    std::optional<ProjectionParts> product = projection_parts(graph, weights, n);
    // assign-precision makes products of two terms as projections; those that have an epilogue stay as they
    // are.
    if (!product || (graph.nodes[static_cast<std::size_t>(n)].op == "projection" && !is_bare(*product)))
      continue;
    if (graph.type(product->outputs[0]).dtype != DType::F32) continue;
    std::optional<ProjectionParts> parts = Epilogue(graph, uses, weights, std::move(*product)).grow();
    // Of two products that are added to one another the later takes the addition: the earlier waits for
    // nothing.
    const auto is_taken = [&](int node) { return taken[static_cast<std::size_t>(node)]; };
    if (!parts || std::any_of(parts->nodes.begin(), parts->nodes.end(), is_taken)) continue;
    for (const int node : parts->nodes) taken[static_cast<std::size_t>(node)] = true;
    found.push_back(std::move(*parts));
  }
  std::vector<Node> fused;
  fused.reserve(found.size());
  for (const ProjectionParts& parts : found) count_fired(graph, parts, context);
  for (const ProjectionParts& parts : found) fused.push_back(HONE_TRY(projection_node(graph, uses, parts)));
  for (std::size_t i = 0; i < found.size(); ++i) put_in_place(graph, found[i].nodes, std::move(fused[i]));
  if (!found.empty()) sweep(graph);
  return {};
}

}  // namespace hone
