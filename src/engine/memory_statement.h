// What a run of a compiled model will take, item by item, before it runs; and what fits a budget.
#pragma once

#include <string>
#include <vector>

#include "engine/compile.h"
#include "tensor/dim.h"
#include "tokens/load_tokenizer.h"

namespace hone {

// File: pages of the mapped file, apart from the rest: the system takes them back where it needs memory.
enum class MemoryRegion : std::uint8_t { Static, Dynamic, Workspace, File };

struct MemoryItem {
  std::string name;  // "weights", "KV cache"
  MemoryRegion region = MemoryRegion::Static;
  std::int64_t bytes = 0;
  std::string allocation;  // the allocation that makes it
};

// The layer of a module, "layers.3.attn.q_proj" -> "layers.3"; of other modules their first part.
std::string layer_of(const std::string& module);

struct LayerMemory {
  std::string module;  // "layers.3", "lm_head"
  std::int64_t static_bytes = 0;
  std::int64_t state_bytes = 0;
  std::int64_t dynamic_bytes = 0;    // largest set of its own values alive at once
  std::int64_t workspace_bytes = 0;  // what its hungriest kernel needs, all threads
};

struct MemoryStatement {
  std::vector<MemoryItem> items;
  std::vector<LayerMemory> layers;
  std::int64_t static_bytes = 0;
  std::int64_t dynamic_bytes = 0;  // activations and KV cache
  std::int64_t workspace_bytes = 0;
  std::int64_t file_bytes = 0;
  std::int64_t total_bytes = 0;  // growth of the process over the state before the load, but for file_bytes
};

// `tokenizer`: tokenizer_memory of the checkpoint (tokens/load_tokenizer.h).
MemoryStatement memory_statement(const Plan& plan, const Checkpoint& checkpoint,
                                 const TokenizerMemory& tokenizer);

// What a budget allows, found by planning again (sizes only): the largest context for this batch, and the
// largest batch for this context; 0 where not even 1 fits.
struct Fit {
  std::int64_t max_context = 0;
  std::int64_t max_batch = 0;
  std::int64_t least_bytes = 0;  // the smallest need met on the way, one token of one sequence among them
};
Result<Fit> what_fits(const Checkpoint& checkpoint, const EngineOptions& options, std::int64_t budget_bytes,
                      const TokenizerMemory& tokenizer);

// An error (DoesNotFit) with need, have and the largest context that fits, if the statement is over the
// budget
// (`options.memory`, or what the machine has).
Status check_budget(const MemoryStatement& statement, const Checkpoint& checkpoint,
                    const EngineOptions& options, const TokenizerMemory& tokenizer);

}  // namespace hone
