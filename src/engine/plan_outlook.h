// What a plan does in one step, and what would make it smaller: both from headers alone.
#pragma once

#include <string>
#include <vector>

#include "engine/memory_statement.h"

namespace hone {

// One step of a plan.
struct StepWork {
  std::int64_t tokens = 0;  // of each sequence
  std::int64_t launches = 0;
  std::int64_t bytes_moved = 0;
  std::int64_t operations = 0;
  std::int64_t activation_bytes = 0;  // of the arena, at these sizes
};

// The work of a step of `tokens` tokens of each sequence with a full context. Errors: sizes beyond the plan's
// bound.
Result<StepWork> step_work(const Plan& plan, std::int64_t tokens);

// One thing that would make the run smaller.
struct Shrink {
  std::string what;  // the flag or command
  std::int64_t saves_bytes = 0;
  std::string cost;
};

// What is possible for this model under these options, the largest saving first. Each was planned again, or,
// where the weights would change, their packed bytes were added up; what saves nothing is left out.
Result<std::vector<Shrink>> what_shrinks(const Checkpoint& checkpoint, const EngineOptions& options,
                                         const Plan& plan, const TokenizerMemory& tokenizer);

}  // namespace hone
