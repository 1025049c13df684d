// hone-opt: passes over text IR, for looking at one of them and for tests.
//
//   hone-opt FILE.ir --passes fuse-softmax,fuse-attention      these, in this order
//   hone-opt FILE.ir --level O2 --stop-after fuse-norm         the pipeline of a level, or its beginning
//   hone-opt FILE.ir --plugin FILE.so --passes plugin:mine      a pass of a plugin (hone/hone_pass.h)
//
// Reads and prints text IR (- reads stdin); without passes and level it checks and prints what it read.
#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <vector>

#include "apps/command_line.h"
#include "apps/exit_code.h"
#include "apps/report_error.h"
#include "apps/text_io.h"
#include "exec/reference_evaluator.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "passes/pipeline.h"

namespace hone {
namespace {

constexpr std::string_view kProgram = "hone-opt";

struct Arguments {
  std::string file;
  std::vector<std::string> passes;
  std::vector<std::string> plugins;
  std::string level;
  std::string stop_after;
  std::string kv = "f32";
  std::string weights;
  bool int8_activations = false;
};

Result<std::string> read_text(const std::string& path) {
  return path == "-" ? read_stdin() : read_text_file(path);
}

// A graph that breaks the rules of the IR is the text's fault here, not that of a pass.
Result<Graph> read_graph(const std::string& path) {
  const std::string text = HONE_TRY(read_text(path));
  Result<Graph> graph = parse_graph(text);
  if (!graph.ok()) {
    Error error = std::move(graph).error();
    error.where = fmt::format("{}: {}", path, error.where);
    return error;
  }
  Status checked = verify(*graph, "reading");
  if (checked.ok()) return graph;
  Error error = std::move(checked).error();
  error.code = ErrorCode::BadInput;
  error.fault = Fault::User;
  error.where = fmt::format("{}: {}", path, error.where);
  error.next_step = "correct the text; the rules stand in src/graph/graph.h";
  return error;
}

Result<Level> level_from_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"O0", "O1", "O2", "O3"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Level>(i);
  }
  return Error{ErrorCode::Usage,         Fault::User,        "--level",
               "no level has this name", "O0, O1, O2 or O3", std::string(name),
               "choose one of these"};
}

Result<PassContext> make_context(const Arguments& arguments) {
  static const ReferenceEvaluator evaluator;
  PassContext context;
  context.evaluator = &evaluator;
  const std::optional<DType> kv = dtype_from_name(arguments.kv);
  if (!kv) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--kv",
                 "no element type has this name",
                 "f32, f16, bf16 or q8_0",
                 arguments.kv,
                 "choose one of these"};
  }
  context.precision.kv = *kv;
  if (!arguments.weights.empty()) {
    const std::optional<DType> weights = dtype_from_name(arguments.weights);
    if (!weights) {
      return Error{ErrorCode::Usage,
                   Fault::User,
                   "--weights",
                   "no element type has this name",
                   "q8_0",
                   arguments.weights,
                   "leave it out, or choose q8_0"};
    }
    context.precision.weights = weights;
  }
  context.precision.int8_activations = arguments.int8_activations;
  return context;
}

Status run(const Arguments& arguments) {
  PipelineOptions options;
  options.verify = true;
  options.stop_after = arguments.stop_after;
  const PassContext context = HONE_TRY(make_context(arguments));
  for (const std::string& file : arguments.plugins) {
    for (auto& plugin : HONE_TRY(load_plugin(file))) options.plugins.push_back(std::move(plugin));
  }
  const std::vector<ChainPass> all = HONE_TRY(make_chain(options));
  std::vector<ChainPass> passes;
  for (const std::string& name : arguments.passes) {
    const auto found = std::ranges::find(all, name, [](const ChainPass& pass) { return pass.row.name; });
    if (found == all.end()) return unknown_passes({&name, 1}, "--passes", all);
    passes.push_back(*found);
  }
  if (!arguments.level.empty()) options.level = HONE_TRY(level_from_name(arguments.level));
  Graph graph = HONE_TRY(read_graph(arguments.file));
  for (const ChainPass& pass : passes) {
    HONE_TRY(run_pass(graph, pass, options, context));
    if (pass.row.name == options.stop_after) break;
  }
  if (!arguments.level.empty()) HONE_TRY(run_pipeline(graph, options, context));
  print_answer(print_graph(graph));
  return answer_status();
}

int main_of(int count, char** values) {
  Arguments arguments;
  const CommandLine line("hone-opt", "Runs passes over text IR");
  const Command program = line.program();
  program.option("file", arguments.file, "text IR; - is stdin").required();
  const Flag passes =
      program.option("--passes", arguments.passes, "passes in the order to run them").split_at_commas();
  program.option("--plugin", arguments.plugins, "a shared library with passes: plugin:NAME");
  program.option("--level", arguments.level, "the pipeline of O0, O1, O2 or O3").excludes(passes);
  program.option("--stop-after", arguments.stop_after, "the last pass to run");
  program.option("--kv", arguments.kv,
                 "element type of the KV cache, for assign-precision: f32, f16, bf16 or q8_0");
  program.option("--weights", arguments.weights, "q8_0, for quantise-weights");
  program.flag("--int8-activations", arguments.int8_activations,
               "int8 blocks for matmuls, for assign-precision");
  const ParseOutcome outcome = line.parse(count, values);
  if (outcome.kind == ParseOutcome::Kind::HelpShown) return answer_status().ok() ? kExitDone : 1;
  if (outcome.kind == ParseOutcome::Kind::Wrong) {
    return report_error(outcome.error, kProgram);
  }
  const Status status = run(arguments);
  return status.ok() ? kExitDone : report_error(status.error(), kProgram);
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::open_standard_streams();
  return hone::main_of(argc, argv);
}
