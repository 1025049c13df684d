#include "passes/match.h"

#include <algorithm>

namespace hone {

AxisPath::AxisPath(const Graph& graph, const UseMap& uses, ValueId operand, std::size_t rank)
    : graph_(graph), uses_(uses), value_(operand), axes_(rank, kRepeats) {
  const std::size_t own = graph.type(operand).shape.size();
  const std::size_t shift = rank - std::min(rank, own);
  for (std::size_t i = shift; i < rank; ++i) axes_[i] = static_cast<int>(i - shift);
}

const Node* AxisPath::producer() const {
  const int index = uses_.producer[static_cast<std::size_t>(value_)];
  return index < 0 ? nullptr : &graph_.nodes[static_cast<std::size_t>(index)];
}

// Axes of extent other than 1 must be the same ones in the same order.
bool AxisPath::through_reshape(const Shape& from, const Shape& to) {
  std::vector<int> old_axis(to.size(), kRepeats);
  std::size_t f = 0;
  for (std::size_t t = 0; t < to.size(); ++t) {
    if (to[t] == Dim(1)) continue;
    while (f < from.size() && from[f] == Dim(1)) ++f;
    if (f >= from.size() || !(from[f] == to[t])) return false;
    old_axis[t] = static_cast<int>(f++);
  }
  for (int& axis : axes_) {
    if (axis != kRepeats) axis = old_axis[static_cast<std::size_t>(axis)];
  }
  return true;
}

void AxisPath::through_broadcast(const Shape& from, const Shape& to) {
  const int shift = static_cast<int>(to.size()) - static_cast<int>(from.size());
  for (int& axis : axes_) {
    if (axis == kRepeats) continue;
    const int old_axis = axis - shift;
    const bool repeats =
        old_axis < 0 || !(from[static_cast<std::size_t>(old_axis)] == to[static_cast<std::size_t>(axis)]);
    axis = repeats ? kRepeats : old_axis;
  }
}

bool AxisPath::step() {
  const Node* node = producer();
  if (node == nullptr || node->inputs.empty()) return false;
  const ValueId source = node->inputs[0];
  const Type& from = graph_.type(source);
  const Type& to = graph_.type(value_);
  if (node->op == "permute") {
    const auto* permutation = node->attributes.get<std::vector<std::int64_t>>("axes");
    if (permutation == nullptr) return false;
    for (int& axis : axes_) {
      if (axis != kRepeats) axis = static_cast<int>((*permutation)[static_cast<std::size_t>(axis)]);
    }
  } else if (node->op == "broadcast") {
    through_broadcast(from.shape, to.shape);
  } else if (node->op == "reshape") {
    if (!through_reshape(from.shape, to.shape)) return false;
  } else if (node->op == "cast") {
    const bool widens = (from.dtype == DType::F16 || from.dtype == DType::BF16) && to.dtype == DType::F32;
    if (!widens) return false;
  } else {
    return false;
  }
  value_ = source;
  return true;
}

void AxisPath::enter(ValueId operand) {
  through_broadcast(graph_.type(operand).shape, graph_.type(value_).shape);
  value_ = operand;
}

bool AxisPath::moves(std::size_t i, int axis) const {
  const Shape& shape = graph_.type(value_).shape;
  const auto stands_still = [&](int a) {
    return a == kRepeats || shape[static_cast<std::size_t>(a)] == Dim(1);
  };
  return axes_[i] == axis || (stands_still(axes_[i]) && stands_still(axis));
}

bool AxisPath::follows(std::size_t rank, std::initializer_list<int> axes) const {
  if (graph_.type(value_).shape.size() != rank || axes.size() != axes_.size()) return false;
  std::size_t i = 0;
  return std::all_of(axes.begin(), axes.end(), [&](int axis) { return moves(i++, axis); });
}

std::optional<ValueId> AxisPath::find(std::size_t rank, std::initializer_list<int> axes) {
  do {
    if (follows(rank, axes)) return value_;
  } while (step());
  return std::nullopt;
}

const Node* Pattern::take(ValueId value, std::string_view op) {
  const Node* node = look(value, op);
  if (node == nullptr) return nullptr;
  const int index = uses_->producer[static_cast<std::size_t>(value)];
  if (std::find(nodes_.begin(), nodes_.end(), index) == nodes_.end()) nodes_.push_back(index);
  return node;
}

std::optional<double> Pattern::scalar(ValueId value) const {
  const double* number = scalar_constant(*graph_, *uses_, value);
  return number == nullptr ? std::nullopt : std::optional<double>(*number);
}

bool Pattern::is_scalar(ValueId value, double number) const {
  const std::optional<double> found = scalar(value);
  return found.has_value() && *found == number;
}

std::array<std::pair<ValueId, ValueId>, 2> both_orders(const Node& node) {
  return {std::pair{node.inputs[0], node.inputs[1]}, std::pair{node.inputs[1], node.inputs[0]}};
}

bool reduces_last_axis(const Graph& graph, const Node& node) {
  const auto rank = static_cast<std::int64_t>(graph.type(node.inputs[0]).shape.size());
  const std::int64_t axis = node.attributes.integer("axis");
  return (axis == -1 || axis == rank - 1) && node.attributes.integer("keep_dims") != 0;
}

std::optional<std::int64_t> last_extent(const Shape& shape) {
  return shape.empty() ? std::nullopt : shape.back().as_constant();
}

std::vector<Match> find_matches(const Graph& graph, const UseMap& uses, const Matcher& matcher) {
  std::vector<Match> found;
  std::vector<bool> taken(graph.nodes.size(), false);
  for (int n = static_cast<int>(graph.nodes.size()); n-- > 0;) {
    std::optional<Match> match = matcher(graph, uses, n);
    if (!match) continue;
    const ValueId outputs[] = {match->output};
    if (!only_outputs_escape(graph, uses, match->nodes, outputs)) continue;
    const auto is_taken = [&](int node) { return taken[static_cast<std::size_t>(node)]; };
    if (std::any_of(match->nodes.begin(), match->nodes.end(), is_taken)) continue;
    for (const int node : match->nodes) taken[static_cast<std::size_t>(node)] = true;
    found.push_back(std::move(*match));
  }
  return found;
}

Status fuse_matches(Graph& graph, std::string_view op, const Matcher& matcher, const PassContext& context) {
  const UseMap uses(graph);
  const std::vector<Match> matches = find_matches(graph, uses, matcher);
  // All bodies are cut from the graph as it was matched, before any node is replaced.
  std::vector<Node> fused;
  fused.reserve(matches.size());
  for (const Match& match : matches) {
    fused.push_back(HONE_TRY(
        fused_node(graph, uses, Outline{match.nodes, match.inputs, {match.output}, op, match.attributes})));
  }
  for (std::size_t i = 0; i < matches.size(); ++i) put_in_place(graph, matches[i].nodes, std::move(fused[i]));
  context.fired(op, static_cast<std::int64_t>(matches.size()));
  if (!matches.empty()) remove_dead_nodes(graph);
  return {};
}

}  // namespace hone
