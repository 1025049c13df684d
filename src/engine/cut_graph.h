// Pieces of graphs, for verify: what computes some values from others, and bodies put back in place of the
// fused nodes.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace hone {

// Values that depend on no input of a step: constants, weights, and views of these. They are part of every
// piece that reads them.
std::set<ValueId> static_values(const Graph& graph);

struct Cut {
  Graph graph;            // inputs and outputs are named as `graph` prints the values: "%12"
  std::size_t nodes = 0;  // taken from the graph
};

// The nodes that compute `targets`, back to the values for which `given` holds, to inputs of the step and to
// static values. A target is computed even where `given` holds for it; everything else that reads it then
// reads the given one.
Cut cut_graph(const Graph& graph, std::span<const ValueId> targets,
              const std::function<bool(ValueId)>& given);

// Makes every value that a node writes an output, named as it is printed.
void expose_all(Graph& graph);

// Every fused node as the nodes of its body. Values that are written outside of bodies keep their names.
Graph without_bodies(const Graph& graph);

}  // namespace hone
