// The ordered table of passes and the function that runs it. Who stands where, plugins and moves included, is
// passes/chain.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "passes/chain.h"
#include "passes/pass.h"

namespace hone {

// All passes, in the order in which they run.
std::span<const PassRow> pipeline();

// The row named `name`, or an error that lists the nearest name.
Result<const PassRow*> find_pass(std::string_view name);

// The error of names that no pass of `chain` has; `flag` had them.
Error unknown_passes(std::span<const std::string> names, std::string_view flag,
                     std::span<const ChainPass> chain);

struct PipelineOptions {
  Level level = Level::O3;
  std::vector<std::string> disabled;                       // --passes=-name
  std::vector<PassMove> moves;                             // --passes=name:before:other
  std::vector<std::shared_ptr<const PluginPass>> plugins;  // --plugin FILE
  std::string stop_after;                                  // --stop-after=name; empty: run all
  bool verify = false;                                     // run the verifier after every pass
  // Called after every pass with the graph as it is then (explain counts and plans it; --dump prints it).
  std::function<Status(const PassReport& report, const Graph& graph)> observe;
};

// Runs one pass over `graph`, whatever the level: of `options` only `verify` and `observe` matter. Errors as
// below.
Status run_pass(Graph& graph, const PassRow& row, const PipelineOptions& options, const PassContext& context);
Status run_pass(Graph& graph, const ChainPass& pass, const PipelineOptions& options,
                const PassContext& context);

// Runs the passes of `options.level` over `graph`. Errors: those of make_chain; a pass that fails or breaks
// the IR (Hone; File for one of a plugin; named). A pass named in `stop_after` that does not run at this
// level, or is disabled, still marks the place to stop.
Status run_pipeline(Graph& graph, const PipelineOptions& options, const PassContext& context);

}  // namespace hone
