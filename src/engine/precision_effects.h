// What --precision and each of its rules changes, from headers alone.
#pragma once

#include <string>
#include <vector>

#include "engine/plan_outlook.h"

namespace hone {

// What a plan does under one precision.
struct PrecisionWork {
  std::int64_t launches = 0;         // of a step
  std::int64_t prefill_bytes = 0;    // moved in a step of a chunk with a full context
  std::int64_t decode_bytes = 0;     // moved in a step of one token
  std::int64_t int8_operations = 0;  // of products in the step of a chunk; each term of x counts
  std::int64_t f32_operations = 0;
  std::int64_t memory_bytes = 0;  // of the memory statement
};

struct PrecisionStage {
  int line = 0;      // of the rule in its file; 0: no rule
  std::string what;  // "fast", "balanced", the rule as it stands
  PrecisionWork work;
};

// fast, then what was asked for: another policy, or rule after rule, each on top of those before it. One
// entry if nothing was asked for. `plan` is the one under `options`.
Result<std::vector<PrecisionStage>> precision_stages(const Checkpoint& checkpoint,
                                                     const EngineOptions& options, const Plan& plan,
                                                     const TokenizerMemory& tokenizer);

}  // namespace hone
