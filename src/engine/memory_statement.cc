#include "engine/memory_statement.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "base/thread_pool.h"
#include "exec/executor.h"
#include "file/json_text.h"
#include "plan/heap_bytes.h"
#include "tokens/sampler.h"

namespace hone {

std::string layer_of(const std::string& module) {
  std::size_t end = module.find('.');
  if (module.starts_with("layers.") && end != std::string::npos) end = module.find('.', end + 1);
  return module.substr(0, end);
}

namespace {

std::vector<LayerMemory> per_layer(const Plan& plan) {
  std::vector<LayerMemory> layers;
  std::map<std::string, std::size_t> index;
  const auto layer = [&](const std::string& module) -> LayerMemory& {
    const std::string name = layer_of(module);
    const auto [at, added] = index.emplace(name, layers.size());
    if (added) layers.push_back({name, 0, 0, 0, 0});
    return layers[at->second];
  };
  for (const StaticBuffer& buffer : plan.statics) layer(buffer.module).static_bytes += buffer.bytes;
  for (const StateBuffer& buffer : plan.states) {
    // "k.3" belongs to layer 3.
    layer("layers." + buffer.name.substr(buffer.name.find('.') + 1)).state_bytes += buffer.bytes;
  }
  std::map<std::string, std::vector<std::pair<int, std::int64_t>>>
      changes;  // per layer: step, bytes come or gone
  for (const ValueLife& life : plan.lives) {
    const Result<std::int64_t> bytes = life.bytes.evaluate(plan.bound);
    if (!bytes.ok()) continue;
    changes[layer_of(life.module)].emplace_back(life.first, *bytes);
    changes[layer_of(life.module)].emplace_back(life.last + 1, -*bytes);
  }
  for (auto& [name, list] : changes) {
    std::sort(list.begin(), list.end());
    std::int64_t live = 0;
    LayerMemory& entry = layer(name);
    for (const auto& [step, bytes] : list) {
      live += bytes;
      entry.dynamic_bytes = std::max(entry.dynamic_bytes, live);
    }
  }
  for (const Step& step : plan.steps) {
    LayerMemory& entry = layer(step.module);
    entry.workspace_bytes = std::max(entry.workspace_bytes, step.scratch_bytes * plan.target.threads);
  }
  return layers;
}

// The expressions of a tokenizer compile to less than this (tokens/expression.h).
constexpr std::int64_t kExpressionBytes = 64 << 10;
// What the deepest call reaches of a stack, in whole pages (ulimit -s is room, not use).
constexpr std::int64_t kStackBytes = 64 << 10;
// M_TOP_PAD and M_TRIM_THRESHOLD of glibc: up to this much free memory stays at the top of an arena.
constexpr std::int64_t kAllocatorPadBytes = 128 << 10;

std::int64_t header_bytes(const Checkpoint& checkpoint) {
  std::size_t sum = 0;
  for (const TensorEntry& tensor : checkpoint.tensors) {
    sum += sizeof(TensorEntry) + tensor.name.size() + tensor.type_name.size() +
           tensor.shape.size() * sizeof(std::int64_t);
  }
  std::int64_t out = static_cast<std::int64_t>(sum);
  if (checkpoint.config != nullptr) out += json_heap_bytes(*checkpoint.config);
  if (checkpoint.generation_config != nullptr) out += json_heap_bytes(*checkpoint.generation_config);
  return out;
}

// V, from the last axis of the logits [R,V].
std::int64_t vocabulary_of(const Plan& plan) {
  for (const Port& port : plan.outputs) {
    if (port.name == "logits") return port.type.shape.back().as_constant().value_or(0);
  }
  return 0;
}

}  // namespace

MemoryStatement memory_statement(const Plan& plan, const Checkpoint& checkpoint,
                                 const TokenizerMemory& tokenizer) {
  MemoryStatement out;
  const std::int64_t sampler = Sampler::predicted_heap_bytes(vocabulary_of(plan));
  const std::int64_t late = plan.state_bytes + plan.dynamic_bytes + plan.workspace_bytes;
  const std::int64_t staging = std::max<std::int64_t>(0, staging_bytes(plan, checkpoint) - late);
  const std::int64_t workers =
      static_cast<std::int64_t>(ThreadPool::kWorkerStackBytes) * (plan.target.threads - 1);
  // What is allocated when the tokenizer is there already.
  const std::int64_t after_tokenizer = plan.static_bytes + late + staging + workers + sampler;
  out.items = {
      {"weights and constants", MemoryRegion::Static, plan.static_bytes,
       "one arena, every tensor in its packed layout"},
      {"tokenizer tables", MemoryRegion::Static, tokenizer.tables,
       "vocabulary, merges and their hash tables"},
      {"header", MemoryRegion::Static, header_bytes(checkpoint),
       "names, shapes and offsets of the file's tensors, and config.json"},
      {"plan and addresses", MemoryRegion::Static, heap_bytes(plan) + Executor::heap_bytes(plan),
       "steps, operands and formulas on the heap"},
      {"KV cache", MemoryRegion::Dynamic, plan.state_bytes, "one arena, touched at start"},
      {"activations", MemoryRegion::Dynamic, plan.dynamic_bytes, "one arena, touched at start"},
      {"kernel workspace", MemoryRegion::Workspace, plan.workspace_bytes,
       plan.workspace == Workspace::Own ? fmt::format("{} threads x {} bytes, touched at start",
                                                      plan.target.threads, plan.scratch_bytes_per_thread)
                                        : fmt::format("{} threads x {} bytes at most, among the activations",
                                                      plan.target.threads, plan.scratch_bytes_per_thread)},
      {"sampler", MemoryRegion::Workspace, sampler,
       "one candidate and one count per token of the vocabulary"},
      {"expressions", MemoryRegion::Workspace, kExpressionBytes,
       "compiled code of the pre-tokeniser's expressions"},
      {"allocator pads", MemoryRegion::Workspace, 2 * kAllocatorPadBytes,
       "what malloc keeps above the heap and above the compiling thread's arena"},
      {"stacks", MemoryRegion::Workspace, 2 * kStackBytes,
       "pages of the caller's stack, and of the compiling thread's, which the C library keeps for the next "
       "thread"},
      {"worker stacks", MemoryRegion::Workspace, workers, fmt::format("{} workers", plan.target.threads - 1)},
      // Both are given back before what comes later is made, so only what exceeds that adds to the peak.
      {"staging while loading", MemoryRegion::Workspace, staging,
       fmt::format("{} bytes, given back before the activations are allocated",
                   staging_bytes(plan, checkpoint))},
      {"reading the tokenizer", MemoryRegion::Workspace,
       std::max<std::int64_t>(0, tokenizer.loading - after_tokenizer),
       fmt::format("{} bytes, given back before the weights are read", tokenizer.loading)},
  };
  if (plan.mapped_bytes > 0) {
    out.items.push_back(
        {"weights in the file", MemoryRegion::File, plan.mapped_bytes,
         fmt::format("{} tensors run from the mapped file; apart from the sum, for the system takes "
                     "their pages back where it needs memory",
                     plan.mapped.size())});
  }
  for (const MemoryItem& item : out.items) {
    if (item.region == MemoryRegion::File) {
      out.file_bytes += item.bytes;
      continue;
    }
    std::int64_t& sum = item.region == MemoryRegion::Static    ? out.static_bytes
                        : item.region == MemoryRegion::Dynamic ? out.dynamic_bytes
                                                               : out.workspace_bytes;
    sum += item.bytes;
    out.total_bytes += item.bytes;
  }
  out.layers = per_layer(plan);
  return out;
}

namespace {

Result<std::int64_t> total_at(const Checkpoint& checkpoint, const OptimisedModel& model,
                              EngineOptions options, std::int64_t context, std::int64_t batch,
                              const TokenizerMemory& tokenizer) {
  options.context = context;
  options.batch = batch;
  const Bindings bound = HONE_TRY(plan_bound(model.config, options));
  const Plan plan = HONE_TRY(plan_of(model, options, bound));
  return memory_statement(plan, checkpoint, tokenizer).total_bytes;
}

// The largest value in [1, limit] for which total(value) <= budget, by bisection; 0 if there is none.
template <class Total>
Result<std::int64_t> largest(std::int64_t limit, std::int64_t budget, const Total& total) {
  std::int64_t fits = 0;
  std::int64_t too_large = limit + 1;
  while (too_large - fits > 1) {
    const std::int64_t middle = fits + (too_large - fits) / 2;
    if (HONE_TRY(total(middle)) <= budget) {
      fits = middle;
    } else {
      too_large = middle;
    }
  }
  return fits;
}

constexpr std::int64_t kLargestBatch = 4096;  // beyond it `plan` answers "at least this many"

}  // namespace

Result<Fit> what_fits(const Checkpoint& checkpoint, const EngineOptions& options, std::int64_t budget_bytes,
                      const TokenizerMemory& tokenizer) {
  const OptimisedModel model = HONE_TRY(optimise(checkpoint, options));
  const std::int64_t context = HONE_TRY(plan_bound(model.config, options)).find('C').value_or(1);
  Fit fit;
  fit.least_bytes = HONE_TRY(total_at(checkpoint, model, options, 1, 1, tokenizer));
  // A few tokens more may need a few bytes less: where another order of placement wins, its formulas are
  // other ones.
  fit.max_context = HONE_TRY(largest(model.config.context_length, budget_bytes, [&](std::int64_t n) {
    Result<std::int64_t> total = total_at(checkpoint, model, options, n, options.batch, tokenizer);
    if (total.ok() && options.batch == 1) fit.least_bytes = std::min(fit.least_bytes, *total);
    return total;
  }));
  fit.max_batch = HONE_TRY(largest(kLargestBatch, budget_bytes, [&](std::int64_t n) {
    return total_at(checkpoint, model, options, context, n, tokenizer);
  }));
  return fit;
}

Status check_budget(const MemoryStatement& statement, const Checkpoint& checkpoint,
                    const EngineOptions& options, const TokenizerMemory& tokenizer) {
  const MemoryLimit machine = usable_memory();
  const std::int64_t have = options.memory > 0 ? options.memory : machine.bytes;
  if (statement.total_bytes <= have) return {};
  const Fit fit = HONE_TRY(what_fits(checkpoint, options, have, tokenizer));
  Error error{ErrorCode::DoesNotFit,
              Fault::User,
              options.memory > 0 ? "--memory" : machine.source,
              "the model with this context does not fit the memory",
              fmt::format("need {} bytes", statement.total_bytes),
              fmt::format("have {} bytes", have),
              {}};
  error.next_step = fit.max_context > 0
                        ? fmt::format("--ctx {} is the largest context that fits", fit.max_context)
                        : std::string("no context fits; use a smaller or more quantised model");
  return error;
}

}  // namespace hone
