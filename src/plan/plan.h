// The plan: plain data that says everything a run will do. Ordered steps, kernel choices, buffers and offsets
// as formulas over symbols. It has names and offsets, no addresses.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/target.h"
#include "graph/graph.h"
#include "kernels/kernel.h"
#include "kernels/strip_program.h"
#include "passes/pass.h"

namespace hone {

enum class Region : std::uint8_t {
  Static,   // weights and constants
  State,    // the KV cache
  Dynamic,  // activations, inputs and outputs of a step
  File,     // weights that run from the mapped file
};

// Where the scratch of the kernels lies.
enum class Workspace : std::uint8_t {
  Own,          // in an arena of its own, as large as the hungriest launch needs
  Activations,  // in the dynamic region: each launch's for as long as it runs, where the values leave room
};

// Where one tensor lies: `offset` bytes into its region.
struct Placement {
  Region region = Region::Dynamic;
  Dim offset{0};
  int mapped = -1;  // in Region::File: which of Plan::mapped
};

struct Operand {
  Placement place;
  OperandSpec spec;
};

// One launch.
struct Step {
  const Kernel* kernel = nullptr;
  std::string op;
  std::string module;
  std::string value;  // the printed name of its first output: "%12"
  Attributes attributes;
  std::shared_ptr<const StripProgram> program;  // elementwise steps
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::int64_t scratch_bytes = 0;  // of each thread, at the bound
  Dim scratch_offset{0};           // into the dynamic region, where the workspace lies there
  Dim bytes_moved{0};              // read and written
  Dim bytes_written{0};            // the part of them that is written
  Dim operations{0};
};

// One weight or constant in the static region.
struct StaticBuffer {
  std::string name;  // of the tensor in the checkpoint; empty for a constant
  std::string module;
  Type type;
  Layout layout = Layout::Strided;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::vector<double> values;  // of a constant
};

// A weight that is not copied: rows in file order.
struct MappedWeight {
  std::string name;  // of the tensor in the checkpoint
  std::string module;
  Type type;
  std::int64_t bytes = 0;
};

struct StateBuffer {
  std::string name;
  Type type;  // with the context axis at its capacity
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

// A named input or output of the step.
struct Port {
  std::string name;
  Type type;
  Placement place;
};

struct ValueLife {
  std::string value;  // "%12"
  std::string module;
  Dim bytes;
  Dim offset;
  int first = 0;  // step that writes it
  int last = 0;   // last step that reads it
};

struct Plan {
  Target target;
  Level level = Level::O3;
  Bindings bound;  // the largest value of each symbol that the arenas are made for
  std::vector<Step> steps;
  std::vector<StaticBuffer> statics;
  std::vector<MappedWeight> mapped;
  std::vector<std::string> not_mapped;  // of those that were to be: name and reason
  std::vector<StateBuffer> states;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<ValueLife> lives;  // what lies in the dynamic region, and when

  // Bytes of each region at the bound.
  std::int64_t static_bytes = 0;
  std::int64_t mapped_bytes = 0;  // of weights in the file
  std::int64_t state_bytes = 0;
  std::int64_t dynamic_bytes = 0;
  std::int64_t workspace_bytes =
      0;  // threads * scratch_bytes_per_thread; 0 where it lies in the dynamic region
  std::int64_t scratch_bytes_per_thread = 0;
  std::int64_t dynamic_lower_bound_bytes = 0;  // largest set of values alive in one step
  Dim dynamic_peak{0};                         // dynamic_bytes as a formula
  Workspace workspace = Workspace::Own;
  std::string placement_order;
  // Why fallbacks() is not 0: for each op once, what its fast kernels would need.
  std::string fallback_reasons;

  std::int64_t launches() const { return static_cast<std::int64_t>(steps.size()); }
  // Launches on a reference kernel although the level asks for fast ones.
  std::int64_t fallbacks() const;
  // "n of m launches on fast kernels, the rest on reference kernels because ..", or empty where all are.
  std::string fallback_line() const;
};

// The symbols of a step of `batch` sequences with `tokens` tokens each: B, T, C, R, and N = B*T.
inline Bindings sizes_of_step(std::int64_t batch, std::int64_t tokens, std::int64_t context,
                              std::int64_t rows) {
  return {{'B', batch}, {'T', tokens}, {'C', context}, {'R', rows}, {'N', batch * tokens}};
}

struct PlanOptions {
  Target target;
  Level level = Level::O3;
  Bindings bound;  // B, T, C, R, N
  // false: only sizes and launches are wanted (explain plans the graph after each pass): constants keep no
  // values.
  bool runnable = true;
  Workspace workspace = Workspace::Own;
  // Names of weights that are to run from the mapped file where kernels can read them so.
  const std::set<std::string, std::less<>>* mapped = nullptr;
};

// Makes the plan of `graph`. Errors: (Hone) nodes without a kernel, all of them at once with dtypes, shapes
// and what each candidate would need.
Result<Plan> make_plan(const Graph& graph, const PlanOptions& options);

}  // namespace hone
