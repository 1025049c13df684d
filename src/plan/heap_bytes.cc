#include "plan/heap_bytes.h"

#include "tensor/dim.h"

namespace hone {
namespace {

// By sizes, not capacities: the plan that stays is a copy (engine/session.cc), whose containers are exactly
// full.
constexpr std::int64_t kBlockHeader = 16;  // glibc malloc: size word and alignment of a block

std::int64_t block(std::size_t bytes) {
  if (bytes == 0) return 0;
  return static_cast<std::int64_t>((bytes + 15) / 16 * 16) + kBlockHeader;
}

std::int64_t text(const std::string& string) {
  return string.size() > 15 ? block(string.size() + 1) : 0;
}

std::int64_t dims(const std::vector<Dim>& list) {
  std::int64_t sum = block(list.size() * sizeof(Dim));
  for (const Dim& dim : list) sum += dim.heap_bytes() + kBlockHeader;
  return sum;
}

std::int64_t attributes(const Attributes& list) {
  std::int64_t sum = block(list.items().size() * sizeof(Attributes::Item));
  for (const Attributes::Item& item : list.items()) {
    sum += text(item.first);
    if (const auto* value = std::get_if<std::vector<Dim>>(&item.second)) sum += dims(*value);
    if (const auto* value = std::get_if<std::vector<double>>(&item.second))
      sum += block(value->capacity() * 8);
    if (const auto* value = std::get_if<std::vector<std::int64_t>>(&item.second))
      sum += block(value->capacity() * 8);
    if (const auto* value = std::get_if<std::string>(&item.second)) sum += text(*value);
  }
  return sum;
}

std::int64_t operands(const std::vector<Operand>& list) {
  std::int64_t sum = block(list.size() * sizeof(Operand));
  for (const Operand& operand : list) {
    sum += dims(operand.spec.shape) + dims(operand.spec.strides) + operand.place.offset.heap_bytes();
  }
  return sum;
}

}  // namespace

std::int64_t heap_bytes(const Plan& plan) {
  std::int64_t sum = block(plan.steps.size() * sizeof(Step)) + text(plan.fallback_reasons);
  sum += block(plan.mapped.size() * sizeof(MappedWeight));
  for (const MappedWeight& weight : plan.mapped)
    sum += text(weight.name) + text(weight.module) + dims(weight.type.shape);
  sum += block(plan.not_mapped.size() * sizeof(std::string));
  for (const std::string& reason : plan.not_mapped) sum += text(reason);
  for (const Step& step : plan.steps) {
    sum += text(step.op) + text(step.module) + text(step.value) + attributes(step.attributes);
    sum += operands(step.inputs) + operands(step.outputs);
    sum += step.scratch_offset.heap_bytes() + step.bytes_moved.heap_bytes() +
           step.bytes_written.heap_bytes() + step.operations.heap_bytes();
    if (step.program != nullptr) {
      sum += block(sizeof(StripProgram) + 16) +
             block(step.program->instructions.size() * sizeof(StripInstruction));
    }
  }
  sum += block(plan.statics.size() * sizeof(StaticBuffer));
  for (const StaticBuffer& buffer : plan.statics) {
    sum +=
        text(buffer.name) + text(buffer.module) + dims(buffer.type.shape) + block(buffer.values.size() * 8);
  }
  sum += block(plan.states.size() * sizeof(StateBuffer));
  for (const StateBuffer& buffer : plan.states) sum += text(buffer.name) + dims(buffer.type.shape);
  sum += block(plan.lives.size() * sizeof(ValueLife));
  for (const ValueLife& life : plan.lives) {
    sum += text(life.module) + life.bytes.heap_bytes() + life.offset.heap_bytes();
  }
  return sum;
}

}  // namespace hone
