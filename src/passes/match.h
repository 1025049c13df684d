// What the fusing passes match with: a pattern that remembers which nodes it has walked through, the paths of
// axes through views, and the loop that turns every match into a fused node.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "passes/pass.h"

namespace hone {

inline constexpr int kRepeats = -1;  // in an axis path: the value is the same along this axis

// Walks from an operand back through views, axis by axis: along axis i of the operand, the value reached so
// far moves along its axis axes()[i], or repeats.
class AxisPath {
 public:
  // Of `operand` as it is aligned (at the right) with `rank` axes.
  AxisPath(const Graph& graph, const UseMap& uses, ValueId operand, std::size_t rank);

  ValueId value() const { return value_; }
  // The node that writes the value reached so far, or nullptr for an input of the graph.
  const Node* producer() const;
  // Goes through one permute, broadcast, reshape that only adds or drops axes of extent 1, or cast of f16 or
  // bf16 to f32; false if the producer is none of these.
  bool step();
  // Goes on into an operand of the elementwise node that writes the value reached so far.
  void enter(ValueId operand);
  // True if the value reached so far has as many axes as `rank`, and moves along exactly the axes given.
  bool follows(std::size_t rank, std::initializer_list<int> axes) const;
  // True if it moves along its axis `axis` when the operand's axis `i` moves.
  bool moves(std::size_t i, int axis) const;
  // Steps until follows(rank, axes); nullopt if it never does.
  std::optional<ValueId> find(std::size_t rank, std::initializer_list<int> axes);

 private:
  bool through_reshape(const Shape& from, const Shape& to);
  void through_broadcast(const Shape& from, const Shape& to);

  const Graph& graph_;
  const UseMap& uses_;
  ValueId value_;
  std::vector<int> axes_;
};

// A pattern being matched. Copy it to try an alternative.
class Pattern {
 public:
  Pattern(const Graph& graph, const UseMap& uses) : graph_(&graph), uses_(&uses) {}

  const Graph& graph() const { return *graph_; }
  const UseMap& uses() const { return *uses_; }
  const Type& type(ValueId value) const { return graph_->type(value); }
  const Shape& shape(ValueId value) const { return graph_->type(value).shape; }

  // The node that writes `value` if its op is `op`; take() also makes it part of the match.
  const Node* look(ValueId value, std::string_view op) const {
    return producer_if(*graph_, *uses_, value, op);
  }
  const Node* take(ValueId value, std::string_view op);
  std::optional<double> scalar(ValueId value) const;
  bool is_scalar(ValueId value, double number) const;
  AxisPath path(ValueId operand, std::size_t rank) const { return {*graph_, *uses_, operand, rank}; }

  const std::vector<int>& nodes() const { return nodes_; }

 private:
  const Graph* graph_;
  const UseMap* uses_;
  std::vector<int> nodes_;
};

// Both ways to read a commutative node: (first, second) and (second, first).
std::array<std::pair<ValueId, ValueId>, 2> both_orders(const Node& node);

// True for a reduction along the last axis of its input that keeps that axis.
bool reduces_last_axis(const Graph& graph, const Node& node);

// The extent of the last axis if it is a constant.
std::optional<std::int64_t> last_extent(const Shape& shape);

// One place where a fused node fits: `nodes` (the last of which writes `output`) become one node on `inputs`.
struct Match {
  std::vector<int> nodes;
  std::vector<ValueId> inputs;
  ValueId output = -1;
  Attributes attributes;
};

// Tries to match at the node that would write the fused node's result.
using Matcher = std::function<std::optional<Match>(const Graph&, const UseMap&, int node)>;

// Matches at every node, from the last to the first (the outermost pattern wins), and puts a fused node `op`
// in place of each match that shares no node with an earlier one and of which nothing but the output is read
// outside. What only the matched nodes read is removed: left in place, it would look like a second user to
// the next pass. Each match is counted as a firing of the rule `op`.
Status fuse_matches(Graph& graph, std::string_view op, const Matcher& matcher, const PassContext& context);

// The matches that fuse_matches would fuse.
std::vector<Match> find_matches(const Graph& graph, const UseMap& uses, const Matcher& matcher);

}  // namespace hone
