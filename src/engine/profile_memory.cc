#include "engine/profile_memory.h"

#include <algorithm>
#include <map>

#include "engine/profile_run.h"

namespace hone {

Bindings bindings_of(const StepRecord& step) {
  return {{'B', step.sequences},
          {'T', step.tokens},
          {'C', step.context},
          {'R', step.rows},
          {'N', step.all_tokens}};
}

Result<std::vector<TensorView>> operand_views(const Step& step, const Bindings& bindings) {
  std::vector<TensorView> views;
  views.reserve(step.inputs.size() + step.outputs.size());
  for (const std::vector<Operand>* list : {&step.inputs, &step.outputs}) {
    for (const Operand& operand : *list) {
      TensorView& view = views.emplace_back();
      view.dtype = operand.spec.dtype;
      view.layout = operand.spec.layout;
      view.rank = static_cast<int>(operand.spec.shape.size());
      for (std::size_t i = 0; i < operand.spec.shape.size(); ++i) {
        view.shape[i] = HONE_TRY(operand.spec.shape[i].evaluate(bindings));
        if (i < operand.spec.strides.size())
          view.strides[i] = HONE_TRY(operand.spec.strides[i].evaluate(bindings));
      }
    }
  }
  return views;
}

Call call_of(const Step& step, const std::vector<TensorView>& views) {
  Call call;
  call.attributes = &step.attributes;
  call.program = step.program.get();
  call.inputs = views.data();
  call.input_count = static_cast<int>(step.inputs.size());
  call.outputs = views.data() + step.inputs.size();
  call.output_count = static_cast<int>(step.outputs.size());
  return call;
}

// The plan keeps a state at its capacity; what a step sees of it are its operands there.
Result<std::int64_t> state_in_use(const Plan& plan, const Bindings& bindings) {
  std::map<std::int64_t, std::int64_t> seen;  // offset, bytes
  for (const Step& step : plan.steps) {
    for (const std::vector<Operand>* list : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *list) {
        const std::optional<std::int64_t> offset = operand.place.offset.as_constant();
        if (operand.place.region != Region::State || !offset) continue;
        const std::int64_t bytes =
            HONE_TRY(type_bytes({operand.spec.dtype, operand.spec.shape}).evaluate(bindings));
        seen[*offset] = std::max(seen[*offset], bytes);
      }
    }
  }
  std::int64_t sum = 0;
  for (const StateBuffer& buffer : plan.states) {
    const auto at = seen.find(buffer.offset);
    sum += at == seen.end() ? buffer.bytes : std::min(buffer.bytes, at->second);
  }
  return sum;
}

Result<std::vector<MemorySample>> memory_in_use(const Plan& plan, const Bindings& bindings) {
  std::vector<MemorySample> samples(plan.steps.size());
  std::vector<std::int64_t> change(plan.steps.size() + 1, 0);
  for (const ValueLife& life : plan.lives) {
    const std::int64_t bytes = HONE_TRY(life.bytes.evaluate(bindings));
    change[static_cast<std::size_t>(life.first)] += bytes;
    change[static_cast<std::size_t>(life.last) + 1] -= bytes;
  }
  std::int64_t alive = HONE_TRY(state_in_use(plan, bindings));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    alive += change[i];
    samples[i].static_bytes = plan.static_bytes;
    samples[i].dynamic_bytes = alive;
    const Kernel& kernel = *plan.steps[i].kernel;
    if (kernel.scratch_bytes == nullptr) continue;
    const std::vector<TensorView> views = HONE_TRY(operand_views(plan.steps[i], bindings));
    samples[i].workspace_bytes = kernel.scratch_bytes(call_of(plan.steps[i], views)) * plan.target.threads;
  }
  return samples;
}

Result<std::vector<MemorySample>> memory_samples(const Plan& plan, const Recorder& recorder) {
  std::vector<MemorySample> out;
  for (const Recorder::Loaded& loaded : recorder.loaded()) out.push_back({loaded.at_ns, loaded.bytes, 0, 0});
  const std::span<const Zone> zones = recorder.zones(0);
  std::size_t at = 0;
  for (const StepRecord& step : recorder.steps()) {
    const std::vector<MemorySample> in_use = HONE_TRY(memory_in_use(plan, bindings_of(step)));
    for (; at < zones.size() && zones[at].begin_ns < step.end_ns; ++at) {
      if (zones[at].name < kLaunchName || zones[at].begin_ns < step.begin_ns) continue;
      MemorySample sample = in_use[zones[at].name - kLaunchName];
      sample.at_ns = zones[at].begin_ns;
      out.push_back(sample);
    }
  }
  return out;
}

}  // namespace hone
