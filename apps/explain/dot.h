// A graph in Graphviz's DOT language: a box for each node, a cluster for the body of a fused one.
#pragma once

#include <string>
#include <vector>

#include "apps/explain/snapshot.h"

namespace hone {

// `rows`: kernel and cost of the nodes, found by the name of their first output; a node without one is drawn
// without. Edges carry the types of their values. `graph` may be a part of the one that `rows` are of.
std::string graph_dot(const Graph& graph, const std::vector<NodeRow>& rows);

// Whether fused nodes are drawn with their bodies: not in a large graph, where each is one box.
bool draws_bodies(const Graph& graph);

}  // namespace hone
