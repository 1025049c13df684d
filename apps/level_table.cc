#include "apps/level_table.h"

#include <fmt/format.h>

#include "apps/plural.h"
#include "apps/verb.h"
#include "file/open.h"
#include "graph/cost.h"

namespace hone {

Result<LevelNumbers> plan_numbers(const Graph& graph, const Plan& plan) {
  LevelNumbers out;
  out.nodes = count_graph(graph).nodes;
  out.launches = plan.launches();
  for (const Step& step : plan.steps) out.bytes += HONE_TRY(step.bytes_moved.evaluate(plan.bound));
  out.activation_bytes = plan.dynamic_bytes;
  out.activation_lower_bound_bytes = plan.dynamic_lower_bound_bytes;
  return out;
}

Result<LevelNumbers> graph_numbers(const Graph& graph, const Target& target, Level level,
                                   const StepSizes& sizes) {
  const Plan plan = HONE_TRY(make_plan(graph, {target, level, sizes.bindings(), false}));
  return plan_numbers(graph, plan);
}

Result<LevelNumbers> level_numbers(const Checkpoint& checkpoint, EngineOptions options, Level level,
                                   const StepSizes& sizes) {
  options.level = level;
  options.dump.clear();
  const OptimisedModel model = HONE_TRY(optimise(checkpoint, options));
  return graph_numbers(model.graph, model.target, level, sizes);
}

Result<std::string> level_table(const std::string& path, const EngineOptions& options) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(path));
  const ModelConfig config = HONE_TRY(read_config(checkpoint));
  StepSizes sizes;
  sizes.tokens = std::min(sizes.tokens, config.context_length);
  sizes.context = sizes.tokens;
  const LevelNumbers before = HONE_TRY(level_numbers(checkpoint, options, Level::O1, sizes));
  const LevelNumbers after = HONE_TRY(level_numbers(checkpoint, options, Level::O3, sizes));
  std::string out = fmt::format("{:<28}{:>12}{:>12}{:>9}\n", counted(sizes.tokens, "token") + " in one step",
                                "O1", "O3", "O3/O1");
  const auto row = [&](std::string_view name, std::int64_t a, std::int64_t b, bool bytes) {
    out += fmt::format("{:<28}{:>12}{:>12}{:>9.3f}\n", name, bytes ? human_bytes(a) : fmt::format("{}", a),
                       bytes ? human_bytes(b) : fmt::format("{}", b),
                       a > 0 ? static_cast<double>(b) / static_cast<double>(a) : 0.0);
  };
  row("nodes", before.nodes, after.nodes, false);
  row("launches", before.launches, after.launches, false);
  row("bytes moved", before.bytes, after.bytes, true);
  row("planned activation memory", before.activation_bytes, after.activation_bytes, true);
  return out;
}

}  // namespace hone
