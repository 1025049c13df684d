// How long compiling takes, from the header of a model of public shape: the whole, and each pass. Times are
// the smallest of some runs, for a compile has no reason to be faster than the machine.
//
//   compile_bench [SHAPE ..]        default: qwen2-0.5b llama2-7b
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "engine/compile.h"
#include "engine/random_model.h"
#include "file/open.h"

namespace hone {
namespace {

constexpr int kRuns = 7;

struct Times {
  double whole_ms = 0;
  double optimise_ms = 0;  // graph and passes
  double plan_ms = 0;
  std::map<std::string, double> pass_ms;
  std::vector<PassReport> passes;
  std::int64_t nodes = 0;
};

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

Result<Times> measure(const Checkpoint& checkpoint) {
  EngineOptions options;
  options.context = 4096;
  Times times;
  for (int run = 0; run < kRuns; ++run) {
    const CompiledModel model = HONE_TRY(compile(checkpoint, options));
    const auto begin = std::chrono::steady_clock::now();
    const OptimisedModel graph = HONE_TRY(optimise(checkpoint, options));
    const double optimised = milliseconds_since(begin);
    const Bindings bound = HONE_TRY(plan_bound(graph.config, options));
    const auto planning = std::chrono::steady_clock::now();
    HONE_TRY(make_plan(graph.graph, {graph.target, options.level, bound}));
    const double planned = milliseconds_since(planning);
    // Watched apart: an observer has the graph printed.
    const auto ignore = [](const PassReport*, const Graph&) { return Status{}; };
    OptimisedModel watched = HONE_TRY(optimise(checkpoint, options, ignore));
    const auto smaller = [run](double& to, double ms) { to = run == 0 ? ms : std::min(to, ms); };
    smaller(times.whole_ms, model.seconds * 1e3);
    smaller(times.optimise_ms, optimised);
    smaller(times.plan_ms, planned);
    for (const PassReport& pass : watched.passes) smaller(times.pass_ms[pass.name], pass.milliseconds);
    times.passes = std::move(watched.passes);
  }
  times.nodes = times.passes.empty() ? 0 : times.passes.front().before.nodes;
  return times;
}

void print(const std::string& shape, const Times& times) {
  fmt::print("{:<22}{:>10.1f} ms, {} nodes; smallest of {} runs\n", shape, times.whole_ms, times.nodes,
             kRuns);
  double passes = 0;
  for (const PassReport& pass : times.passes) {
    passes += times.pass_ms.at(pass.name);
    fmt::print("  {:<20}{:>10.2f} ms  {}\n", pass.name, times.pass_ms.at(pass.name),
               rules_to_string(pass.rules));
  }
  fmt::print("  {:<20}{:>10.2f} ms\n", "graph", std::max(0.0, times.optimise_ms - passes));
  fmt::print("  {:<20}{:>10.2f} ms\n\n", "plan", times.plan_ms);
}

Status run(const std::string& name, const std::string& path) {
  const ModelShape shape = HONE_TRY(find_shape(name));
  HONE_TRY(write_model_header(shape, {}, path));
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(path));
  print(name, HONE_TRY(measure(checkpoint)));
  return {};
}

int main_of(std::vector<std::string> shapes) {
  if (shapes.empty()) shapes = {"qwen2-0.5b", "llama2-7b"};
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("compile_bench.{}.gguf", getpid())).string();
  int code = 0;
  for (const std::string& name : shapes) {
    const Status status = run(name, path);
    if (status.ok()) continue;
    fmt::print(stderr, "{}: {}; expected {}\n", name, status.error().message, status.error().expected);
    code = 2;
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return code;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  return hone::main_of({argv + 1, argv + argc});
}
