// Until when each value of a graph is needed.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/graph.h"
#include "graph/op_row.h"
#include "graph/rewrite.h"

namespace hone {

// The last node that reads a value, itself or through views and whatever else shares its memory.
class LastReads {
 public:
  LastReads(const Graph& graph, const UseMap& uses) : last_(graph.values.size(), -1) {
    const int end = static_cast<int>(graph.nodes.size());
    for (const GraphInput& input : graph.inputs) last_[static_cast<std::size_t>(input.value)] = end;
    for (std::size_t v = 0; v < last_.size(); ++v) {
      if (uses.escapes[v]) last_[v] = end;
    }
    // Backwards: the readers of a node's outputs are known before it passes them on to the inputs that it
    // shares.
    for (int n = end; n-- > 0;) {
      const Node& node = graph.nodes[static_cast<std::size_t>(n)];
      const OpRow* row = find_op(node.op);
      for (const ValueId input : node.inputs) read(input, n);
      if (row != nullptr && row->op_class == OpClass::View) read(node.inputs[0], of(node.outputs[0]));
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const int aliased = aliased_input(node, i);
        if (aliased >= 0) read(node.inputs[static_cast<std::size_t>(aliased)], of(node.outputs[i]));
      }
    }
  }

  int of(ValueId value) const { return last_[static_cast<std::size_t>(value)]; }

 private:
  void read(ValueId value, int node) {
    int& last = last_[static_cast<std::size_t>(value)];
    last = std::max(last, node);
  }
  std::vector<int> last_;
};

}  // namespace hone
