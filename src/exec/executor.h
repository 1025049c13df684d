// Runs a plan: arenas, addresses, threads. Decides nothing: order, kernels and places are the plan's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "exec/arena.h"
#include "exec/load_weights.h"
#include "plan/plan.h"
#include "profile/recorder.h"

namespace hone {

class Executor {
 public:
  // Allocates and touches the arenas and loads the weights. `plan` must outlive the executor, and so must
  // `checkpoint` where weights run from it. The state
  // starts as zeros. Errors: those of load_weights; DoesNotFit where the system refuses memory or threads.
  static Result<std::unique_ptr<Executor>> create(const Plan& plan, const Checkpoint& checkpoint,
                                                  const LoadProgress& progress);

  // Sizes of the next step. Errors (Hone): a symbol without a value, below 1, or above the bound of the plan.
  Status bind(const Bindings& bindings);

  // The memory of an input or output under the current binding; an error (Hone) for a name the plan does not
  // have.
  Result<std::span<std::byte>> input(std::string_view name);
  Result<std::span<const std::byte>> output(std::string_view name) const;

  // Runs all steps. `recorder`, if given, has room for the launches of the plan and gets each of them.
  void run(Recorder* recorder = nullptr);

  // Launches since the executor was made, counted where they happen.
  std::int64_t launches() const { return launches_; }
  ThreadPool& pool() { return *pool_; }

  // Bytes of each arena that lie in memory now.
  struct Resident {
    std::int64_t statics = 0, state = 0, dynamic = 0, workspace = 0;
  };
  Resident resident() const;

  // Bytes of the tables that an executor of `plan` makes on the heap.
  static std::int64_t heap_bytes(const Plan& plan);

 private:
  struct BoundOperand {
    TensorView view;
    std::byte* region = nullptr;
    std::int64_t offset = 0;
  };
  // One number of an operand that depends on symbols.
  struct Formula {
    const Dim* dim = nullptr;
    std::int64_t* target = nullptr;
    std::uint32_t symbols = 0;  // bit i: mentions plan.bound's symbol i
  };
  struct BoundStep {
    const Step* step = nullptr;
    std::size_t first_operand = 0;  // inputs, then outputs, in operands_ and views_
    std::int64_t scratch_offset = 0;
  };

  explicit Executor(const Plan& plan) : plan_(plan) {}
  Status prepare();
  Status add_operand(const Operand& operand);
  Status add_formula(const Dim& dim, std::int64_t* target);
  std::byte* region_base(const Placement& place) const;
  Status map_weights(const Checkpoint& checkpoint);
  void run_step(const BoundStep& bound, WorkSpan* spans);

  const Plan& plan_;
  std::vector<const std::byte*> mapped_;  // of Plan::mapped
  Arena statics_;
  Arena state_;
  Arena dynamic_;
  Arena workspace_;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<BoundStep> steps_;
  std::vector<BoundOperand> operands_;
  std::vector<TensorView> views_;  // copies of operands_' views, contiguous per step, as calls take them
  std::vector<Formula> formulas_;
  Bindings bindings_;
  bool bound_once_ = false;
  std::int64_t launches_ = 0;
};

}  // namespace hone
