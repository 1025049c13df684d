#include "engine/precision_effects.h"

#include <algorithm>

namespace hone {
namespace {

bool is_product(const Step& step) {
  return step.op == "projection" || step.op == "matmul" || step.op == "expert_matmul" ||
         step.op == "swiglu_mlp" || step.op == "geglu_mlp";
}

Result<PrecisionWork> work_of(const Checkpoint& checkpoint, const Plan& plan,
                              const TokenizerMemory& tokenizer) {
  const StepWork prefill = HONE_TRY(step_work(plan, plan.bound.find('T').value_or(1)));
  PrecisionWork work;
  work.launches = prefill.launches;
  work.prefill_bytes = prefill.bytes_moved;
  work.decode_bytes = HONE_TRY(step_work(plan, 1)).bytes_moved;
  work.memory_bytes = memory_statement(plan, checkpoint, tokenizer).total_bytes;
  for (const Step& step : plan.steps) {
    if (!is_product(step)) continue;
    const std::int64_t operations = HONE_TRY(step.operations.evaluate(plan.bound));
    if (step.inputs[0].spec.dtype == DType::Q8A) {
      work.int8_operations += operations * step.attributes.integer("terms", 1);
    } else {
      work.f32_operations += operations;
    }
  }
  return work;
}

Result<PrecisionWork> work_under(const Checkpoint& checkpoint, const EngineOptions& options,
                                 const TokenizerMemory& tokenizer) {
  const OptimisedModel model = HONE_TRY(optimise(checkpoint, options));
  const Bindings bound = HONE_TRY(plan_bound(model.config, options));
  return work_of(checkpoint, HONE_TRY(plan_of(model, options, bound)), tokenizer);
}

}  // namespace

Result<std::vector<PrecisionStage>> precision_stages(const Checkpoint& checkpoint,
                                                     const EngineOptions& options, const Plan& plan,
                                                     const TokenizerMemory& tokenizer) {
  if (options.precision == Precision::Fast && options.precision_rules == nullptr)
    return std::vector{PrecisionStage{0, "fast", HONE_TRY(work_of(checkpoint, plan, tokenizer))}};
  EngineOptions plain = options;
  plain.precision = Precision::Fast;
  plain.precision_rules = nullptr;
  plain.dump.clear();
  std::vector<PrecisionStage> stages;
  stages.push_back({0, "fast", HONE_TRY(work_under(checkpoint, plain, tokenizer))});
  if (options.precision != Precision::Fast) {
    plain.precision = options.precision;
    stages.push_back({0, options.precision == Precision::Balanced ? "balanced" : "exact",
                      HONE_TRY(work_under(checkpoint, plain, tokenizer))});
  }
  if (options.precision_rules == nullptr) return stages;
  PrecisionRules first{options.precision_rules->path, {}};
  for (const PrecisionRule& rule : options.precision_rules->rules) {
    first.rules.push_back(rule);
    plain.precision_rules = std::make_shared<const PrecisionRules>(first);
    stages.push_back({rule.line, rule.text, HONE_TRY(work_under(checkpoint, plain, tokenizer))});
  }
  return stages;
}

}  // namespace hone
