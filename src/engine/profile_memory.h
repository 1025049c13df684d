// How much of each region is in use, launch by launch, from the plan's lifetimes.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "profile/recorder.h"
#include "profile/trace_writer.h"

namespace hone {

Bindings bindings_of(const StepRecord& step);

// The operands of `step` as kernels get them, without data.
Result<std::vector<TensorView>> operand_views(const Step& step, const Bindings& bindings);
// A call over these views, which must outlive it.
Call call_of(const Step& step, const std::vector<TensorView>& views);

// One sample for each launch of the plan under `bindings`; all have the time 0.
Result<std::vector<MemorySample>> memory_in_use(const Plan& plan, const Bindings& bindings);

// Bytes of the state that hold rows of the context.
Result<std::int64_t> state_in_use(const Plan& plan, const Bindings& bindings);

}  // namespace hone
