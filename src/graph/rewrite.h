// What passes are written with: look at producers and users, outline a set of nodes into one fused node,
// replace, insert and remove nodes.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// The node that writes `value` if its op is `op`; else nullptr.
const Node* producer_if(const Graph& graph, const UseMap& uses, ValueId value, std::string_view op);

// The real number that `value` is, if it is a constant of one element (through reshapes and broadcasts of
// one).
const double* scalar_constant(const Graph& graph, const UseMap& uses, ValueId value);

// True if `nodes` can become one node: no value written inside is read outside, or leaves the graph, except
// `outputs`.
bool only_outputs_escape(const Graph& graph, const UseMap& uses, std::span<const int> nodes,
                         std::span<const ValueId> outputs);

// A set of nodes that is to become one.
struct Outline {
  std::vector<int> nodes;  // indices, any order; only_outputs_escape holds for them
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string_view op;
  Attributes attributes;
  std::string_view flatten =
      {};  // fused nodes of this op come into the body as the nodes of their own bodies
};

// The fused node: op, inputs and outputs as `what` says, with a body that holds the nodes as they were.
// Sources, views and elementwise nodes outside `nodes` that these read are copied into the body, back to
// `inputs`; the originals stay. An error (Hone) if that does not end at `inputs`.
Result<Node> fused_node(const Graph& graph, const UseMap& uses, const Outline& what);

// Marks `nodes` as removed (empty op) and puts `fused` where the last of them stood, so that indices stay as
// they are; call sweep() when done.
void put_in_place(Graph& graph, std::span<const int> nodes, Node fused);

// The same, with `fused` where node `slot`, one of `nodes`, stood.
void put_at(Graph& graph, std::span<const int> nodes, int slot, Node fused);

// Removes nodes whose op is empty.
void sweep(Graph& graph);

// Removes nodes whose results nobody reads, and then those that only they read.
void remove_dead_nodes(Graph& graph);

// Puts each node in front of the node with that index as it is now; several for one index keep their order.
void insert_before(Graph& graph, std::vector<std::pair<int, Node>> added);

// Every read of `from` reads `to` instead, outputs and state updates included.
void replace_uses(Graph& graph, ValueId from, ValueId to);

}  // namespace hone
