// What a caller may ask of compiling and loading a model: the flags that cli.md has for every verb.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/isa.h"
#include "passes/chain.h"
#include "passes/precision.h"
#include "passes/precision_rules.h"
#include "plan/plan.h"
#include "tensor/dtype.h"

namespace hone {

struct EngineOptions {
  Level level = Level::O3;
  std::vector<std::string> disabled_passes;
  std::vector<PassMove> moved_passes;
  std::vector<std::shared_ptr<const PluginPass>> plugins;
  std::string stop_after;  // the last pass to run; empty: all
  std::string dump;        // a folder for the graph as text, before the first pass and after each
  Precision precision = Precision::Fast;
  std::shared_ptr<const PrecisionRules> precision_rules;  // on top of it; nullptr: none
  std::optional<DType> kv;                                // overrides the policy's type of the KV cache
  std::optional<DType> weights;  // float matrices are rounded to it as they are loaded
  std::optional<Isa> isa;        // default: the best this machine has
  bool portable_bits = false;    // the same bits on every ISA level
  std::int64_t threads = 0;      // 0: all that this process may use
  std::int64_t context = 0;      // tokens per sequence; 0: min(the model's, kDefaultContext)
  std::int64_t chunk = 512;      // prompt tokens per step
  std::int64_t batch = 1;        // sequences
  std::int64_t workspace = 0;    // most bytes of scratch of all threads, which may cost threads; 0: no limit
  Workspace workspace_in = Workspace::Own;
  std::int64_t memory = 0;  // hard budget in bytes; 0: what the machine has
  bool all_logits = false;  // logits of every token of a step, not only of one per sequence
  bool hidden_outputs = false;
  bool no_pack = false;        // weights run from the mapped file where kernels can read them so
  bool strict = false;         // a fallback to a reference kernel is an error
  bool verify_passes = false;  // run the IR verifier after every pass
};

inline constexpr std::int64_t kDefaultContext = 4096;

}  // namespace hone
