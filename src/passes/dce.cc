#include "passes/dce.h"

#include "graph/rewrite.h"

namespace hone {

Status eliminate_dead_code(Graph& graph, const PassContext&) {
  remove_dead_nodes(graph);
  return {};
}

}  // namespace hone
