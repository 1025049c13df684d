// Checkpoint header -> graph -> passes -> plan. Reads no weights.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/result.h"
#include "engine/options.h"
#include "file/checkpoint.h"
#include "model/config.h"
#include "passes/pipeline.h"
#include "plan/plan.h"

namespace hone {

struct CompiledModel {
  ModelConfig config;
  PrecisionPolicy precision;
  Plan plan;
  std::vector<PassReport> passes;
  std::int64_t context = 0;  // tokens per sequence that the plan has room for
  std::string thread_source;
  double seconds = 0;
  std::int64_t nodes = 0;  // of the final graph, constants not counted
};

// Called with the graph before the first pass (report == nullptr) and after each.
using PassObserver = std::function<Status(const PassReport* report, const Graph& graph)>;

struct ChosenTarget {
  Target target;
  std::string thread_source;
};
// What the options ask for on this machine. Errors: an instruction set it does not have; threads out of
// range.
Result<ChosenTarget> choose_target(const EngineOptions& options);

// The graph after the passes: everything but the sizes that the arenas are made for.
struct OptimisedModel {
  ModelConfig config;
  PrecisionPolicy precision;
  Target target;
  std::string thread_source;
  Graph graph;
  std::vector<PassReport> passes;
  std::vector<std::string> misaligned;  // weights that were to run from the file and begin at an odd place
};
Result<OptimisedModel> optimise(const Checkpoint& checkpoint, const EngineOptions& options,
                                const PassObserver& observe = {});

// The largest value of each symbol that a plan under these options has room for. Errors: a context that is
// longer than the model's; a size out of range.
Result<Bindings> plan_bound(const ModelConfig& config, const EngineOptions& options);

// The plan of an optimised model: make_plan(), with as many threads as `options.workspace` leaves room for.
// Errors: those of make_plan; (DoesNotFit) a launch whose scratch is above it on one thread, named.
Result<Plan> plan_of(const OptimisedModel& model, const EngineOptions& options, const Bindings& bound,
                     bool runnable = true);

// optimise(), then plan_of().
// Errors: those of read_config, build_graph, the passes and make_plan; (User) options out of range.
Result<CompiledModel> compile(const Checkpoint& checkpoint, const EngineOptions& options,
                              const PassObserver& observe = {});

// Compiles of this process, counted where they happen: one serves every length, so a run ends with 1.
std::int64_t compile_count();

}  // namespace hone
