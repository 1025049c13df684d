// A loaded model: from token ids to logits, step by step. One compile serves every length.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/compile.h"
#include "engine/memory_statement.h"
#include "exec/executor.h"
#include "tokens/generation_defaults.h"
#include "tokens/tokenizer.h"

namespace hone {

class Session {
 public:
  // Opens the file, compiles, checks the budget and builds the tokenizer: all that needs no weights, so that
  // a prompt can be refused before they are read. Errors: those of each; with `options.strict`, CheckFailed
  // for a launch on a reference kernel. `recorder`, if given, outlives the session and measures all that it
  // does.
  static Result<std::unique_ptr<Session>> prepare(const std::string& path, const EngineOptions& options,
                                                  Recorder* recorder = nullptr);
  // Allocates the arenas and reads the weights; once, before the first step.
  Status load(const LoadProgress& progress = {});
  // Both.
  static Result<std::unique_ptr<Session>> open(const std::string& path, const EngineOptions& options,
                                               const LoadProgress& progress = {});

  const EngineOptions& options() const { return options_; }
  const CompiledModel& model() const { return model_; }
  const MemoryStatement& memory() const { return memory_; }
  // Kernels that the last step() launched, counted by the executor.
  std::int64_t launches_of_last_step() const { return last_launches_; }
  // nullptr if the checkpoint carries no tokenizer.
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  const GenerationDefaults& generation_defaults() const { return defaults_; }
  double load_seconds() const { return load_seconds_; }
  // What the process has grown by since before the load, at its peak; without the pages of the file where
  // weights run from it.
  std::int64_t peak_bytes() const;
  // The same, item by item: the statement's arenas, then all else. Errors: none; before load() the arenas are
  // 0.
  struct MeasuredItem {
    std::string name;
    std::int64_t predicted_bytes = 0;
    std::int64_t measured_bytes = 0;
  };
  std::vector<MeasuredItem> measured_items() const;
  Executor& executor() { return *executor_; }
  Recorder* recorder() const { return recorder_; }

  // One token of a step: which row of the batch, its id, its position in its sequence.
  // `ids[b]`: the tokens of sequence b in this step, which follow `past[b]` tokens that its state holds
  // already; they may differ in number, and some may be empty, but not all. What is computed are these
  // tokens, where flatten-tokens has rewritten the graph; where not, as many of each sequence as of the
  // longest, the rest of which is padding. `rows`: which tokens' logits are wanted, as (sequence, index in
  // its ids).
  struct Row {
    std::int64_t sequence = 0;
    std::int64_t index = 0;
  };
  // `lengths[b]`: the length for which the rotary table of sequence b is made, in models whose table depends
  // on it: while a prompt is fed in chunks, that of the whole prompt; empty: past + ids of each.
  // f32 [rows,V], valid until the next step. Errors: (User) an id outside the vocabulary; a context that is
  // full.
  Result<std::span<const float>> step(std::span<const std::vector<std::int32_t>> ids,
                                      std::span<const std::int64_t> past, std::span<const Row> rows,
                                      std::span<const std::int64_t> lengths = {});

  // A named output of the last step (hidden states), f32.
  Result<std::span<const float>> output(std::string_view name) const;

  // Runs a prompt of one sequence from position `past` on in chunks, and returns the last token's logits [V].
  Result<std::span<const float>> prefill(std::span<const std::int32_t> ids, std::int64_t past);

 private:
  Session() = default;
  // Where the tokens of a step stand: sequence b has those from `first[b]` on, `room[b]` of them with
  // padding.
  struct Places {
    std::vector<std::int64_t> first, room;
    bool flat = false;
  };
  Places places_of(std::span<const std::vector<std::int32_t>> ids, std::int64_t tokens) const;
  Status fill_inputs(std::span<const std::vector<std::int32_t>> ids, std::span<const std::int64_t> past,
                     std::span<const Row> rows, std::span<const std::int64_t> lengths, const Places& places);
  Status fill_lengths(std::span<const std::vector<std::int32_t>> ids, std::span<const std::int64_t> past,
                      std::span<const std::int64_t> lengths, const Places& places);

  EngineOptions options_;
  Recorder* recorder_ = nullptr;
  std::optional<Checkpoint> checkpoint_;
  CompiledModel model_;
  std::int64_t last_launches_ = 0;
  MemoryStatement memory_;
  std::optional<Tokenizer> tokenizer_;
  GenerationDefaults defaults_;
  std::unique_ptr<Executor> executor_;
  double load_seconds_ = 0;
  std::int64_t resident_before_ = 0;
  std::int64_t file_before_ = 0;
};

}  // namespace hone
