// What passes are written with: look at producers and users, outline a set of nodes into one fused node, replace and
// remove nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// The node that writes `value` if its op is `op`; else nullptr.
const Node* producer_if(const Graph& graph, const UseMap& uses, ValueId value, std::string_view op);

// The real number that `value` is, if it is a constant of one element (through casts, reshapes and broadcasts of one).
const double* scalar_constant(const Graph& graph, const UseMap& uses, ValueId value);

// True if `nodes` can become one node: no value written inside is read outside, or leaves the graph, except `outputs`.
bool only_outputs_escape(const Graph& graph, const UseMap& uses, std::span<const int> nodes,
                         std::span<const ValueId> outputs);

// One fused node in place of `nodes` (indices, any order): op `op`, reading `inputs` and writing `outputs`, with a body
// that holds the nodes as they were. Constants that `nodes` read are copied into the body. The caller has made sure
// that only_outputs_escape. Marks the nodes as removed (empty op) and puts the new node where the last of them stood;
// call sweep() when done.
void outline(Graph& graph, std::span<const int> nodes, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
             std::string_view op, Attributes attributes);

// Removes nodes whose op is empty.
void sweep(Graph& graph);

// Every read of `from` reads `to` instead, outputs and state updates included.
void replace_uses(Graph& graph, ValueId from, ValueId to);

}  // namespace hone
