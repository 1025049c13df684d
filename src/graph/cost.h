// What a node costs, from its op row: the numbers that explain and plan report.
#pragma once

#include "graph/graph.h"

namespace hone {

// True for a node that runs (views and constants do not).
bool is_launch(const Node& node);

// Bytes a node reads and writes, from types alone; 0 for nodes that are no launch. A value read twice counts
// twice: it is what goes through the memory system when nothing stays in cache.
Dim bytes_moved(const Graph& graph, const Node& node);

// The part of bytes_moved() that is written.
Dim bytes_written(const Graph& graph, const Node& node);

// Useful arithmetic operations (a fused multiply-add is 2).
Dim operations(const Graph& graph, const Node& node);

}  // namespace hone
