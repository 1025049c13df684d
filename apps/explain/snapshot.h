// A graph as `hone explain` shows it: each node with its kernel, cost and place in memory, for one step of
// given sizes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/level_table.h"
#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// What a node reads or writes.
struct NodeValue {
  std::string name;      // "%12"
  std::string port;      // its name where it is an input of the graph: "blk.0.attn_q.weight"
  std::string type;      // "f32[B,T,576]"
  std::string producer;  // op of the node that writes it; "input", "weight" or "state" where none does
};

struct NodeRow {
  std::string value;  // "%12", its first output
  std::string op;
  std::string module;
  std::string type;        // of its first output
  std::string attributes;  // "{axis = 0}", or empty
  std::string body;        // text IR of a fused node
  std::vector<NodeValue> inputs;
  std::vector<NodeValue> outputs;
  bool constant = false;
  int index = -1;          // in Graph::nodes
  int step = -1;           // of the plan; -1: a view or a constant, which cost nothing
  std::string kernel;      // empty where step is -1
  bool reference = false;  // that kernel is a reference kernel
  std::int64_t bytes = 0;  // moved
  std::int64_t operations = 0;
  int life = -1;            // in Snapshot::lives; -1: its output lies in no buffer of its own
  std::int64_t memory = 0;  // bytes of that buffer
};

// A buffer of the dynamic region.
struct LifeRow {
  std::string value;
  std::string module;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  int first = 0;  // step
  int last = 0;
};

struct Snapshot {
  LevelNumbers numbers;
  std::vector<NodeRow> nodes;  // in an order of execution
  std::vector<LifeRow> lives;
  int steps = 0;
};

// What one graph is at one level.
Result<Snapshot> take_snapshot(const Graph& graph, const Target& target, Level level, const StepSizes& sizes);

// The number N of a module "layers.N" or "layers.N.attn"; -1: of no layer.
int layer_of(std::string_view module);
// One more than the largest layer of the nodes.
int layer_count(const std::vector<NodeRow>& nodes);

// Part of a graph as a graph of its own: the nodes of a layer. What it reads from elsewhere becomes inputs,
// what is read elsewhere outputs.
Graph layer_graph(const Graph& graph, int layer);

}  // namespace hone
