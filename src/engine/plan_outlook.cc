#include "engine/plan_outlook.h"

#include <algorithm>
#include <fmt/format.h>

#include "tensor/panel_layout.h"

namespace hone {
namespace {

// The bytes that packed matrices would lose as `dtype`; those that are narrower already lose none.
std::int64_t saved_by_quantising(const Plan& plan, DType dtype) {
  std::int64_t saved = 0;
  for (const StaticBuffer& buffer : plan.statics) {
    const Shape& shape = buffer.type.shape;
    if (buffer.layout != Layout::Panel16 || shape.size() < 2) continue;
    const std::int64_t k = shape.back().as_constant().value_or(0);
    const std::int64_t n = shape[shape.size() - 2].as_constant().value_or(0);
    const std::int64_t matrices = shape.size() == 3 ? shape[0].as_constant().value_or(0) : 1;
    if (k % dtype_row(dtype).block_elements != 0) continue;
    saved += std::max<std::int64_t>(0, buffer.bytes - matrices * panel_bytes(dtype, n, k));
  }
  return saved;
}

struct Candidate {
  EngineOptions options;
  std::string what;
  std::string cost;
};

std::vector<Candidate> candidates(const EngineOptions& options, const Plan& plan) {
  std::vector<Candidate> found;
  const std::int64_t context = plan.bound.find('C').value_or(1);
  const std::int64_t chunk = plan.bound.find('T').value_or(1);
  if (context > 1) {
    found.push_back({options, fmt::format("--ctx {}", context / 2), "half as many tokens in a sequence"});
    found.back().options.context = context / 2;
  }
  if (chunk > 1) {
    found.push_back(
        {options, fmt::format("--chunk {}", chunk / 2), "a prompt reads the weights twice as often"});
    found.back().options.chunk = chunk / 2;
  }
  const bool wide_cache = std::any_of(plan.states.begin(), plan.states.end(), [](const StateBuffer& state) {
    return state.type.dtype == DType::F32;
  });
  if (wide_cache) {
    found.push_back({options, "--kv f16", "keys and values rounded to 11 bits"});
    found.back().options.kv = DType::F16;
  }
  if (plan.target.threads > 1) {
    found.push_back({options, "--threads 1", "one thread does all the work"});
    found.back().options.threads = 1;
  }
  if (plan.mapped_bytes == 0 && !options.no_pack) {
    found.push_back({options, "--no-pack",
                     "each step lays out the weights that it reads; their pages count as the file's"});
    found.back().options.no_pack = true;
  }
  if (plan.workspace == Workspace::Own) {
    found.push_back({options, "--workspace-in activations",
                     "nothing: a launch's scratch lies where the step's values leave room"});
    found.back().options.workspace_in = Workspace::Activations;
  }
  return found;
}

}  // namespace

Result<StepWork> step_work(const Plan& plan, std::int64_t tokens) {
  Bindings sizes = plan.bound;
  sizes.set('T', tokens);
  sizes.set('N', tokens * sizes.find('B').value_or(1));
  StepWork work;
  work.tokens = tokens;
  work.launches = plan.launches();
  for (const Step& step : plan.steps) {
    work.bytes_moved += HONE_TRY(step.bytes_moved.evaluate(sizes));
    work.operations += HONE_TRY(step.operations.evaluate(sizes));
  }
  work.activation_bytes = HONE_TRY(plan.dynamic_peak.evaluate(sizes));
  return work;
}

Result<std::vector<Shrink>> what_shrinks(const Checkpoint& checkpoint, const EngineOptions& options,
                                         const Plan& plan, const TokenizerMemory& tokenizer) {
  const std::int64_t now = memory_statement(plan, checkpoint, tokenizer).total_bytes;
  std::vector<Shrink> found;
  OptimisedModel as_it_is = HONE_TRY(optimise(checkpoint, options));
  for (Candidate& candidate : candidates(options, plan)) {
    const bool same_graph =
        candidate.options.kv == options.kv && candidate.options.no_pack == options.no_pack;
    OptimisedModel other = same_graph ? OptimisedModel{} : HONE_TRY(optimise(checkpoint, candidate.options));
    OptimisedModel& changed = same_graph ? as_it_is : other;
    const int threads = changed.target.threads;
    if (candidate.options.threads > 0) changed.target.threads = static_cast<int>(candidate.options.threads);
    const Bindings bound = HONE_TRY(plan_bound(changed.config, candidate.options));
    const Plan smaller = HONE_TRY(plan_of(changed, candidate.options, bound));
    changed.target.threads = threads;
    const std::int64_t then = memory_statement(smaller, checkpoint, tokenizer).total_bytes;
    found.push_back({std::move(candidate.what), now - then, std::move(candidate.cost)});
  }
  for (const DType dtype : {DType::Q8_0, DType::Q4_0}) {
    found.push_back({fmt::format("hone quantize --to {}", dtype_name(dtype)),
                     saved_by_quantising(plan, dtype),
                     fmt::format("matrices rounded to {} bits a weight; it prints the error",
                                 8.0 * static_cast<double>(dtype_row(dtype).block_bytes) /
                                     static_cast<double>(dtype_row(dtype).block_elements))});
  }
  std::erase_if(found, [](const Shrink& shrink) { return shrink.saves_bytes <= 0; });
  std::stable_sort(found.begin(), found.end(),
                   [](const Shrink& a, const Shrink& b) { return a.saves_bytes > b.saves_bytes; });
  return found;
}

}  // namespace hone
