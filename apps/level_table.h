// Nodes, launches, bytes and activation memory of a model at each level, from its header alone.
#pragma once

#include <array>
#include <string>

#include "engine/compile.h"
#include "engine/options.h"

namespace hone {

struct LevelNumbers {
  std::int64_t nodes = 0;
  std::int64_t launches = 0;
  std::int64_t bytes = 0;             // moved in a step of the sizes asked for
  std::int64_t activation_bytes = 0;  // planned, at those sizes
  std::int64_t activation_lower_bound_bytes = 0;
};

// Sizes of the step that is counted.
struct StepSizes {
  std::int64_t batch = 1;
  std::int64_t tokens = 512;
  std::int64_t context = 512;

  Bindings bindings() const { return sizes_of_step(batch, tokens, context, batch); }
};

Result<LevelNumbers> level_numbers(const Checkpoint& checkpoint, EngineOptions options, Level level,
                                   const StepSizes& sizes);

// The numbers of one graph and its plan, whose bound are the sizes that are counted.
Result<LevelNumbers> plan_numbers(const Graph& graph, const Plan& plan);

// The numbers of one graph, planned at `level`.
Result<LevelNumbers> graph_numbers(const Graph& graph, const Target& target, Level level,
                                   const StepSizes& sizes);

// A table of O1 and O3 with the ratio, for run's closing report.
Result<std::string> level_table(const std::string& path, const EngineOptions& options);

}  // namespace hone
