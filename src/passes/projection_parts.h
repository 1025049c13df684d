// A projection (tensor/projection.h) taken apart, as the passes that make and change one need it:
// fuse-epilogue, merge-projections, fold-norm.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "tensor/projection.h"

namespace hone {

struct ProjectionParts {
  ValueId x = -1;
  std::vector<ProjectionSection>
      sections;  // operands are values of the graph; `output` counts into `outputs`
  std::vector<ValueId> outputs;
  std::int64_t terms = 1;  // rows of q8a that x has for each row
  ValueId row_sums = -1;
  double eps = 0;
  double head_eps = 0;  // of the norms of heads, and what is added to their weights
  double head_offset = 0;
  double next_offset = 0;
  std::vector<int> nodes;  // that compute it
  std::string module;      // of its products

  bool has_head_norm() const;
  std::vector<ValueId> inputs() const;  // x first, each once
  Attributes attributes() const;        // operands as numbers of inputs()
};

// The weights of `graph`.
std::set<ValueId> weight_values(const Graph& graph);

// What node `index` computes if it is a projection, or a matmul, swiglu_mlp or geglu_mlp of x [B,T,K] by
// weights.
std::optional<ProjectionParts> projection_parts(const Graph& graph, const std::set<ValueId>& weights,
                                                int index);

// The node that computes `parts`.
Result<Node> projection_node(const Graph& graph, const UseMap& uses, const ProjectionParts& parts);

}  // namespace hone
