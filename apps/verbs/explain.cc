// hone explain: the chain of passes, what each changed, and what the levels cost.
#include <fmt/format.h>
#include <fstream>
#include <memory>

#include "apps/level_table.h"
#include "apps/plural.h"
#include "apps/verb.h"
#include "file/open.h"
#include "graph/text.h"

namespace hone {
namespace {

struct ExplainFlags : CommonFlags {
  std::int64_t batch = 1;
  std::int64_t tokens = 512;
  std::int64_t step_context = 512;
  std::string graph;  // F.ir
};

struct PassRowNumbers {
  PassReport report;
  LevelNumbers before;
  LevelNumbers after;
};

struct Explanation {
  std::vector<PassRowNumbers> passes;
  LevelNumbers levels[4];
  std::string symbols;
};

Status write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return Error{ErrorCode::BadInput, Fault::User, path, "the file cannot be written",
               "a writable path",   {},          {}};
}

Result<Explanation> explain(const ExplainFlags& flags, const Checkpoint& checkpoint,
                            const EngineOptions& options, const StepSizes& sizes) {
  Explanation out;
  const Target target = HONE_TRY(choose_target(options)).target;
  LevelNumbers before;
  const auto observe = [&](const PassReport* report, const Graph& graph) -> Status {
    LevelNumbers now = HONE_TRY(graph_numbers(graph, target, options.level, sizes));
    if (report != nullptr) out.passes.push_back({*report, before, now});
    before = now;
    return {};
  };
  const OptimisedModel model = HONE_TRY(optimise(checkpoint, options, observe));
  out.symbols = model.graph.symbols;
  if (!flags.graph.empty()) HONE_TRY(write_text(flags.graph, print_graph(model.graph)));
  for (const Level level : {Level::O0, Level::O1, Level::O2, Level::O3}) {
    out.levels[static_cast<std::size_t>(level)] = HONE_TRY(level_numbers(checkpoint, options, level, sizes));
  }
  return out;
}

Json as_json(const Explanation& explanation) {
  Json passes = Json::array();
  for (const PassRowNumbers& row : explanation.passes) {
    passes.push_back({{"name", row.report.name},
                      {"nodes_before", row.before.nodes},
                      {"nodes_after", row.after.nodes},
                      {"launches_before", row.before.launches},
                      {"launches_after", row.after.launches},
                      {"bytes_before", row.before.bytes},
                      {"bytes_after", row.after.bytes},
                      {"memory_before_bytes", row.before.activation_bytes},
                      {"memory_after_bytes", row.after.activation_bytes},
                      {"ms", row.report.milliseconds},
                      {"changed", row.report.changed},
                      {"contract", contract_to_string(row.report.contract)}});
  }
  Json levels = Json::object();
  for (std::size_t i = 0; i < 4; ++i) {
    const LevelNumbers& level = explanation.levels[i];
    levels[fmt::format("O{}", i)] = {{"nodes", level.nodes},
                                     {"launches", level.launches},
                                     {"bytes", level.bytes},
                                     {"activation_bytes", level.activation_bytes},
                                     {"activation_lower_bound_bytes", level.activation_lower_bound_bytes}};
  }
  Json symbols = Json::array();
  for (const char letter : explanation.symbols) symbols.push_back(std::string(1, letter));
  return {{"passes", std::move(passes)}, {"levels", std::move(levels)}, {"symbols", std::move(symbols)}};
}

std::string as_text(const Explanation& explanation, const StepSizes& sizes) {
  const LevelNumbers& eager = explanation.levels[1];
  const LevelNumbers& best = explanation.levels[3];
  std::string out =
      fmt::format("launches {} -> {} (O1 -> O3), for {}, {}, context {}\n\n", eager.launches, best.launches,
                  counted(sizes.batch, "sequence"), counted(sizes.tokens, "token"), sizes.context);
  out += fmt::format("{:<20}{:>14}{:>16}{:>24}{:>24}{:>9}  {}\n", "pass", "nodes", "launches", "bytes moved",
                     "activation memory", "ms", "contract");
  for (const PassRowNumbers& row : explanation.passes) {
    if (!row.report.changed) {
      out += fmt::format("{:<20}{:>14}{:>73.1f}  {}\n", row.report.name, "(unchanged)",
                         row.report.milliseconds, contract_to_string(row.report.contract));
      continue;
    }
    const auto bytes = [](std::int64_t a, std::int64_t b) {
      return human_bytes(a) + " -> " + human_bytes(b);
    };
    out += fmt::format("{:<20}{:>14}{:>16}{:>24}{:>24}{:>9.1f}  {}\n", row.report.name,
                       fmt::format("{} -> {}", row.before.nodes, row.after.nodes),
                       fmt::format("{} -> {}", row.before.launches, row.after.launches),
                       bytes(row.before.bytes, row.after.bytes),
                       bytes(row.before.activation_bytes, row.after.activation_bytes),
                       row.report.milliseconds, contract_to_string(row.report.contract));
  }
  out += fmt::format("\n{:<8}{:>10}{:>10}{:>14}{:>20}{:>14}\n", "level", "nodes", "launches", "bytes moved",
                     "activation memory", "lower bound");
  for (std::size_t i = 0; i < 4; ++i) {
    const LevelNumbers& level = explanation.levels[i];
    out += fmt::format("{:<8}{:>10}{:>10}{:>14}{:>20}{:>14}\n", fmt::format("O{}", i), level.nodes,
                       level.launches, human_bytes(level.bytes), human_bytes(level.activation_bytes),
                       human_bytes(level.activation_lower_bound_bytes));
  }
  return out;
}

// The largest sizes whose products with a model's own (heads, layers, bytes) stay inside 64 bits.
constexpr std::int64_t kMostSequences = 1 << 16;
constexpr std::int64_t kMostTokens = 1 << 23;
constexpr std::int64_t kMostScores = std::int64_t{1} << 40;

Status run(const ExplainFlags& flags) {
  const EngineOptions options = HONE_TRY(flags.engine_options());
  const StepSizes sizes{flags.batch, flags.tokens, std::max(flags.step_context, flags.tokens)};
  const std::int64_t scores = sizes.batch * sizes.tokens * sizes.context;
  if (scores > kMostScores) {
    return usage_error("--batch, --tokens, --ctx", "the step is too large",
                       fmt::format("a product of at most {}", kMostScores),
                       fmt::format("{} x {} x {}", sizes.batch, sizes.tokens, sizes.context));
  }
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  const Explanation explanation = HONE_TRY(explain(flags, checkpoint, options, sizes));
  if (flags.json) {
    print_json(as_json(explanation));
  } else {
    print_answer(as_text(explanation, sizes));
  }
  return {};
}

}  // namespace

Verb add_explain(const CommandLine& line) {
  const Command verb =
      line.add_verb("explain", "the chain of passes: what each changed, and what the levels cost");
  auto flags = std::make_shared<ExplainFlags>();
  flags->add_to(verb);
  // Here --ctx is the context of the step that is counted.
  verb.remove("--ctx");
  verb.option("--ctx", flags->step_context, "context of the step that is counted")
      .show_default()
      .within(1, kMostTokens);
  verb.option("--batch", flags->batch, "sequences in the step that is counted")
      .show_default()
      .within(1, kMostSequences);
  verb.option("--tokens", flags->tokens, "tokens per sequence in it").show_default().within(1, kMostTokens);
  verb.option("--graph", flags->graph, "a file: the final graph as text");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
