// The local half of verify: what one pass rewrote, each value in its old and its new form on the same
// operands.
#pragma once

#include <string>

#include "engine/graph_runner.h"
#include "passes/pass.h"

namespace hone {

// What a run of O0 left: every value by name, and how the pieces are run.
struct Yardstick {
  const Checkpoint& checkpoint;
  PlanOptions plan;       // of the pieces: target, level, sizes
  NamedTensors recorded;  // of O0, inputs of the step included
};

// Twice the expected deviation: fast functions are off by up to 2 units where the model has fewer, and
// roundings that neighbours share (a row has one norm) count once, not n times.
inline constexpr double kTypical = 2;
// The root mean square of n independent draws of deviation 1 is above 1 + t/sqrt(n) with a probability below
// exp(-t^2 / 2): 2e-11 for t = 7, so no false alarm in a billion values.
inline constexpr double kSample = 7;
// One element: 8 deviations (exp(-8^2 / 2) = 1e-14) of twice the expected size.
inline constexpr double kLargest = 8 * kTypical;

struct RewriteCheck {
  int rewritten = 0;     // values that are computed in another way
  bool ok = true;        // all of them within the contract
  double max_error = 0;  // of the worst of them, relative to its largest element
  double bound = 0;      // what the contract allows there, in the same measure
  // The smallest piece of those that fail, or the worst one where none does: its value, old form, new form.
  std::string value;
  std::string before;
  std::string after;
};

// Errors (Hone): those of running the pieces, and of an op without a rounding rule.
Result<RewriteCheck> check_rewrites(const Graph& before, const Graph& after, ContractKind contract,
                                    const Yardstick& yardstick);

}  // namespace hone
