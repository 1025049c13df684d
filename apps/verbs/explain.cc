// hone explain: the chain of passes, what each changed, and what the levels cost.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <set>

#include "apps/explain/dot.h"
#include "apps/explain/draw.h"
#include "apps/explain/page.h"
#include "apps/explain/screen.h"
#include "apps/explain/zoom.h"
#include "apps/profile_report.h"
#include "apps/verb.h"
#include "file/open.h"

namespace hone {
namespace {

struct ExplainFlags : CommonFlags {
  std::int64_t batch = 1;
  std::int64_t tokens = 512;
  std::int64_t step_context = 512;
  std::string graph;  // F.ir, F.dot, F.svg
  std::string html;   // F.html
  std::int64_t layer = -1;
  std::string node;
  std::string times;  // F.json of hone profile
  bool wide = false;
};

// Follows a graph through the passes.
class Chain {
 public:
  Chain(const ExplainFlags& flags, Target target, Level level, Explanation& out)
      : flags_(flags), target_(target), level_(level), out_(out) {}

  Status observe(const PassReport* report, const Graph& graph) {
    Snapshot now = HONE_TRY(take_snapshot(graph, target_, level_, out_.sizes));
    const std::string name = report == nullptr ? "built" : report->name;
    if (!flags_.html.empty()) graphs_.add(report == nullptr ? "" : name, now);
    if (report == nullptr) {
      out_.built_values = static_cast<int>(graph.values.size());
    } else {
      out_.passes.push_back({*report, out_.final.numbers, now.numbers});
      note_gone(name, now);
    }
    out_.final = std::move(now);
    pass_before_ = report == nullptr ? "" : name;
    return {};
  }

  PageGraphs& graphs() { return graphs_; }

 private:
  void note_gone(const std::string& pass, const Snapshot& now) {
    std::set<std::string_view> there;
    for (const NodeRow& node : now.nodes) {
      for (const NodeValue& output : node.outputs) there.insert(output.name);
    }
    for (const NodeRow& node : out_.final.nodes) {
      for (const NodeValue& output : node.outputs) {
        if (!there.contains(output.name)) out_.gone[output.name] = {pass, pass_before_};
      }
    }
  }

  const ExplainFlags& flags_;
  Target target_;
  Level level_;
  Explanation& out_;
  PageGraphs graphs_;
  std::string pass_before_;
};

// What each op took, from a document of hone profile; the dearest first.
Result<std::vector<TimeRow>> read_times(const std::string& path) {
  const Json profile = HONE_TRY(read_profile(path));
  std::vector<TimeRow> rows;
  for (const Json& row : profile["ops"]) {
    const auto number = [&](const char* name) {
      return row.contains(name) && row[name].is_number() ? row[name].get<double>() : 0.0;
    };
    const auto text = [&](const char* name) {
      return row.contains(name) ? row[name].get<std::string>() : std::string();
    };
    const double launches = std::clamp(number("launches"), 0.0, 1e15);
    rows.push_back(
        {text("op"), text("phase"), static_cast<std::int64_t>(launches), number("total_s"), number("share")});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TimeRow& a, const TimeRow& b) { return a.seconds > b.seconds; });
  return rows;
}

// The levels, each from the model's own graph.
Status add_levels(const Checkpoint& checkpoint, const EngineOptions& options, Explanation& out) {
  for (const Level level : {Level::O0, Level::O1, Level::O2, Level::O3}) {
    EngineOptions at_level = options;
    at_level.level = level;
    at_level.dump.clear();
    const OptimisedModel model = HONE_TRY(optimise(checkpoint, at_level));
    Snapshot snapshot = HONE_TRY(take_snapshot(model.graph, model.target, level, out.sizes));
    out.levels[static_cast<std::size_t>(level)] = snapshot.numbers;
    if (level == Level::O1) out.eager = std::move(snapshot);
  }
  return {};
}

Status write_files(const ExplainFlags& flags, const Graph& graph, const Explanation& explanation,
                   PageGraphs& graphs) {
  if (!flags.graph.empty()) {
    const Graph part = flags.layer < 0 ? graph : layer_graph(graph, static_cast<int>(flags.layer));
    HONE_TRY(draw_graph(flags.graph, part, explanation.final.nodes));
    if (!flags.graph.ends_with(".ir") && !draws_bodies(part)) {
      print_note(
          "a large graph: fused nodes are drawn without their bodies; --layer N draws one layer with them\n");
    }
  }
  if (flags.html.empty()) return {};
  const std::string title = std::filesystem::path(flags.model).filename().string();
  return write_text(flags.html, explanation_page(title, explanation, graphs));
}

Result<Explanation> explain(const ExplainFlags& flags, const Checkpoint& checkpoint,
                            const EngineOptions& options, const StepSizes& sizes) {
  Explanation out;
  out.sizes = sizes;
  out.level = options.level;
  if (!flags.graph.empty()) HONE_TRY(check_drawing_name(flags.graph));
  if (!flags.times.empty()) out.times = HONE_TRY(read_times(flags.times));
  const Target target = HONE_TRY(choose_target(options)).target;
  Chain chain(flags, target, options.level, out);
  const OptimisedModel model =
      HONE_TRY(optimise(checkpoint, options, [&](const PassReport* report, const Graph& graph) {
        return chain.observe(report, graph);
      }));
  out.symbols = model.graph.symbols;
  out.model = model.graph.name;
  HONE_TRY(add_levels(checkpoint, options, out));
  if (flags.layer >= 0) HONE_TRY(check_layer(out, flags.layer));
  HONE_TRY(write_files(flags, model.graph, out, chain.graphs()));
  return out;
}

Status print_explanation(const ExplainFlags& flags, const Explanation& explanation) {
  if (flags.json) {
    Json document = screen_json(explanation);
    if (flags.layer >= 0) document["layer"] = HONE_TRY(layer_json(explanation, flags.layer));
    if (!flags.node.empty()) document["nodes"] = HONE_TRY(node_json(explanation, flags.node));
    print_json(document);
    return {};
  }
  std::string text;
  if (flags.layer >= 0) text += HONE_TRY(layer_text(explanation, flags.layer));
  if (!flags.node.empty()) text += (text.empty() ? "" : "\n") + HONE_TRY(node_text(explanation, flags.node));
  print_answer(text.empty() ? screen_text(explanation, flags.wide) : text);
  return {};
}

// The largest sizes whose products with a model's own (heads, layers, bytes) stay inside 64 bits.
constexpr std::int64_t kMostSequences = 1 << 16;
constexpr std::int64_t kMostTokens = 1 << 23;
constexpr std::int64_t kMostLayer = 1 << 20;
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
  return print_explanation(flags, explanation);
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
  verb.option("--layer", flags->layer,
              "one layer, before (O1) and after, side by side; --graph draws it alone")
      .within(0, kMostLayer);
  verb.option("--node", flags->node, "one node: a value as printed (%12), a module, or an input's name");
  verb.option("--graph", flags->graph, "a file for the final graph: F.svg (by Graphviz), F.dot or F.ir");
  verb.option("--html", flags->html, "a file: chain, graphs, memory map and nodes as one page");
  verb.option("--times", flags->times, "a document of hone profile --json: also the ops that took most time");
  verb.flag("--wide", flags->wide, "contracts in full, however long the lines");
  return {verb, &flags->json, [flags] { return run(*flags); }};
}

}  // namespace hone
