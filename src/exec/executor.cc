#include "exec/executor.h"

#include <fmt/format.h>

namespace hone {

Result<std::unique_ptr<Executor>> Executor::create(const Plan& plan, const Checkpoint& checkpoint,
                                                   const LoadProgress& progress) {
  std::unique_ptr<Executor> made(new Executor(plan));
  made->pool_ = HONE_TRY(ThreadPool::create(plan.target.threads, plan.target.threads_spin));
  HONE_TRY(made->map_weights(checkpoint));
  made->statics_ = HONE_TRY(Arena::create(plan.static_bytes, "weights", false));
  HONE_TRY(load_weights(plan, checkpoint, *made->pool_, made->statics_, progress));
  made->state_ = HONE_TRY(Arena::create(plan.state_bytes, "KV cache", true));
  made->dynamic_ = HONE_TRY(Arena::create(plan.dynamic_bytes, "activations", true));
  made->workspace_ = HONE_TRY(Arena::create(plan.workspace_bytes, "kernel workspace", true));
  HONE_TRY(made->prepare());
  return made;
}

Executor::Resident Executor::resident() const {
  return {statics_.resident_bytes(), state_.resident_bytes(), dynamic_.resident_bytes(),
          workspace_.resident_bytes()};
}

Status Executor::map_weights(const Checkpoint& checkpoint) {
  for (const MappedWeight& weight : plan_.mapped) {
    const TensorEntry* entry = checkpoint.find_tensor(weight.name);
    const bool fits = entry != nullptr && entry->dtype == weight.type.dtype &&
                      static_cast<std::int64_t>(entry->bytes) == weight.bytes &&
                      entry->file < checkpoint.files.size();
    if (!fits) {
      return Error{ErrorCode::BadFile,
                   Fault::File,
                   fmt::format("{}, tensor {}", checkpoint.path, weight.name),
                   "the tensor is not what the plan was made for",
                   type_to_string(weight.type),
                   "missing, of another size, or not in a file",
                   "make the plan from this checkpoint"};
    }
    mapped_.push_back(checkpoint.files[entry->file]->data().data() + entry->offset);
  }
  return {};
}

std::byte* Executor::region_base(const Placement& place) const {
  switch (place.region) {
    case Region::File:
      // Weights are only read.
      return const_cast<std::byte*>(mapped_[static_cast<std::size_t>(place.mapped)]);
    case Region::Static:
      return statics_.data();
    case Region::State:
      return state_.data();
    case Region::Dynamic:
      return dynamic_.data();
  }
  return nullptr;
}

Status Executor::add_formula(const Dim& dim, std::int64_t* target) {
  if (const std::optional<std::int64_t> constant = dim.as_constant()) {
    *target = *constant;
    return {};
  }
  std::string letters;
  dim.collect_symbols(letters);
  Formula formula{&dim, target, 0};
  const std::span<const Binding> symbols = plan_.bound.items();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (letters.find(symbols[i].symbol) != std::string::npos) formula.symbols |= 1U << i;
  }
  formulas_.push_back(formula);
  return {};
}

Status Executor::add_operand(const Operand& operand) {
  BoundOperand& bound = operands_.emplace_back();
  bound.view.dtype = operand.spec.dtype;
  bound.view.layout = operand.spec.layout;
  bound.view.rank = static_cast<int>(operand.spec.shape.size());
  bound.region = region_base(operand.place);
  for (std::size_t i = 0; i < operand.spec.shape.size(); ++i) {
    HONE_TRY(add_formula(operand.spec.shape[i], &bound.view.shape[i]));
    if (i < operand.spec.strides.size())
      HONE_TRY(add_formula(operand.spec.strides[i], &bound.view.strides[i]));
  }
  return add_formula(operand.place.offset, &bound.offset);
}

std::int64_t Executor::heap_bytes(const Plan& plan) {
  std::size_t sum = plan.steps.size() * sizeof(BoundStep);
  for (const Step& step : plan.steps) {
    if (!step.scratch_offset.is_constant()) sum += sizeof(Formula);
    for (const std::vector<Operand>* list : {&step.inputs, &step.outputs}) {
      sum += list->size() * (sizeof(BoundOperand) + sizeof(TensorView));
      // At most one formula for each extent, stride and offset.
      for (const Operand& operand : *list) {
        sum += (operand.spec.shape.size() + operand.spec.strides.size() + 1) * sizeof(Formula);
      }
    }
  }
  return static_cast<std::int64_t>(sum);
}

Status Executor::prepare() {
  std::size_t count = 0;
  for (const Step& step : plan_.steps) count += step.inputs.size() + step.outputs.size();
  operands_.reserve(count);  // formulas point into both
  steps_.reserve(plan_.steps.size());
  for (const Step& step : plan_.steps) {
    steps_.push_back({&step, operands_.size(), 0});
    HONE_TRY(add_formula(step.scratch_offset, &steps_.back().scratch_offset));
    for (const Operand& operand : step.inputs) HONE_TRY(add_operand(operand));
    for (const Operand& operand : step.outputs) HONE_TRY(add_operand(operand));
  }
  views_.resize(operands_.size());
  return {};
}

Status Executor::bind(const Bindings& bindings) {
  std::uint32_t changed = 0;
  const std::span<const Binding> symbols = plan_.bound.items();
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const std::optional<std::int64_t> value = bindings.find(symbols[i].symbol);
    if (!value || *value < 1 || *value > symbols[i].value) {
      return internal_error("executor", fmt::format("symbol {} is {}, not 1 to {}", symbols[i].symbol,
                                                    value.value_or(0), symbols[i].value));
    }
    if (bindings_.find(symbols[i].symbol) != value) changed |= 1U << i;
  }
  if (changed == 0 && bound_once_) return {};
  for (const Formula& formula : formulas_) {
    if ((formula.symbols & changed) != 0) *formula.target = HONE_TRY(formula.dim->evaluate(bindings));
  }
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    views_[i] = operands_[i].view;
    views_[i].data = operands_[i].region + operands_[i].offset;
  }
  bindings_ = bindings;
  bound_once_ = true;
  return {};
}

Result<std::span<std::byte>> Executor::input(std::string_view name) {
  for (const Port& port : plan_.inputs) {
    if (port.name != name) continue;
    const std::int64_t offset = HONE_TRY(port.place.offset.evaluate(bindings_));
    const std::int64_t bytes = HONE_TRY(type_bytes(port.type).evaluate(bindings_));
    return std::span<std::byte>(dynamic_.data() + offset, static_cast<std::size_t>(bytes));
  }
  return internal_error("executor", fmt::format("the plan has no input '{}'", name));
}

Result<std::span<const std::byte>> Executor::output(std::string_view name) const {
  for (const Port& port : plan_.outputs) {
    if (port.name != name) continue;
    const std::int64_t offset = HONE_TRY(port.place.offset.evaluate(bindings_));
    const std::int64_t bytes = HONE_TRY(type_bytes(port.type).evaluate(bindings_));
    return std::span<const std::byte>(dynamic_.data() + offset, static_cast<std::size_t>(bytes));
  }
  return internal_error("executor", fmt::format("the plan has no output '{}'", name));
}

void Executor::run_step(const BoundStep& bound, WorkSpan* spans) {
  struct Launch {
    Call call;
    const Kernel* kernel;
    std::byte* scratch;
    std::int64_t scratch_bytes;
  };
  const Step& step = *bound.step;
  Launch launch;
  launch.kernel = step.kernel;
  launch.scratch =
      plan_.workspace == Workspace::Own ? workspace_.data() : dynamic_.data() + bound.scratch_offset;
  launch.scratch_bytes =
      plan_.workspace == Workspace::Own ? plan_.scratch_bytes_per_thread : step.scratch_bytes;
  launch.call.attributes = &step.attributes;
  launch.call.program = step.program.get();
  launch.call.inputs = views_.data() + bound.first_operand;
  launch.call.input_count = static_cast<int>(step.inputs.size());
  launch.call.outputs = launch.call.inputs + step.inputs.size();
  launch.call.output_count = static_cast<int>(step.outputs.size());
  const auto run_tiles = [](void* context, std::int64_t begin, std::int64_t end, int thread) {
    const auto& work = *static_cast<const Launch*>(context);
    Call call = work.call;
    call.scratch = work.scratch + thread * work.scratch_bytes;
    for (std::int64_t tile = begin; tile < end; ++tile) work.kernel->run(call, tile);
  };
  pool_->run(step.kernel->tile_count(launch.call), run_tiles, &launch, spans);
  ++launches_;
}

void Executor::run(Recorder* recorder) {
  if (recorder == nullptr) {
    for (const BoundStep& step : steps_) run_step(step, nullptr);
    return;
  }
  // One launch ends where the next begins, so that no time between them goes unnamed.
  std::int64_t begin = now_nanoseconds();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    run_step(steps_[i], recorder->spans());
    const std::int64_t end = now_nanoseconds();
    recorder->add_launch(i, begin, end);
    begin = end;
  }
}

}  // namespace hone
