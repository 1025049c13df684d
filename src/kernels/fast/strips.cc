// fused_elementwise: runs a strip program (kernels/strip_program.h). A tile is kElementsPerTile consecutive
// elements of the output in row-major order, walked in strips of kStripLength; a lane sees nothing but its
// own element, so its bits do not depend on where a tile or a strip begins.
//
// f32 + - * / sqrt are rounded once; rsqrt is 1 / sqrt, rounded twice; exp and tanh are those of
// fast/math16.h; all other functions go through f64 (kernels/strip_math.h). A result of type f16 or bf16 is
// computed in f32 and rounded to its type (for + - * / sqrt that is the correctly rounded result: 24 >= 2 *
// 11 + 2 bits). Comparisons with NaN are false, max and min of NaN are NaN, integers wrap modulo 2^n.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/strip_arithmetic.h"
#include "kernels/fast/strip_memory.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kElementsPerTile = 4096;
static_assert(kElementsPerTile % kStripLength == 0 && kStripLength % kLanes == 0);

// Scratch: the registers, one temporary register, the type of each register. A register is one cache line
// longer than its elements, so that equal lanes of several registers fall into different cache sets.
constexpr std::int64_t kLine = 64;
constexpr std::int64_t register_bytes(bool wide) {
  return kStripLength * (wide ? 8 : 4) + kLine;
}
constexpr std::int64_t kTemporaryBytes = register_bytes(true);

struct Machine {
  const Call* call = nullptr;
  StripCode code;
  Axes axes;
  std::byte* registers = nullptr;
  std::byte* temporary = nullptr;
  DType* types = nullptr;
  std::int64_t stride = 0;  // bytes from register to register
  std::int64_t begin = 0;   // the strip: first element,
  std::int64_t count = 0;   // elements,
  std::int64_t lanes = 0;   // elements rounded up to whole groups
};

std::byte* register_at(const Machine& machine, int index) {
  return machine.registers + index * machine.stride;
}

std::int64_t bytes_of(DType type) {
  return type == DType::Bool ? 1 : type == DType::F64 || type == DType::I64 ? 8 : 4;
}

// Copies run by run between a view and a register of the view's own register type.
void load_strip(const Machine& machine, const TensorView& view, std::byte* to) {
  const DType type = register_type(view.dtype);
  const std::int64_t bytes = bytes_of(type);
  const std::int64_t memory_bytes = element_bytes(view.dtype);
  const std::int64_t stride =
      stride_along(view, machine.axes.last[machine.axes.count - 1], machine.axes.rank);
  for (std::int64_t done = 0; done < machine.count;) {
    const Run run = run_at(machine.axes, view, machine.begin + done);
    const std::int64_t count = smaller(run.length, machine.count - done);
    load_run(view.dtype, static_cast<const std::byte*>(view.data) + run.offset * memory_bytes, stride, count,
             to + done * bytes);
    done += count;
  }
  __builtin_memset(to + machine.count * bytes, 0,
                   static_cast<std::size_t>((machine.lanes - machine.count) * bytes));
}

void store_strip(const Machine& machine, const std::byte* from, const TensorView& view) {
  const std::int64_t bytes = bytes_of(register_type(view.dtype));
  const std::int64_t memory_bytes = element_bytes(view.dtype);
  const std::int64_t stride =
      stride_along(view, machine.axes.last[machine.axes.count - 1], machine.axes.rank);
  for (std::int64_t done = 0; done < machine.count;) {
    const Run run = run_at(machine.axes, view, machine.begin + done);
    const std::int64_t count = smaller(run.length, machine.count - done);
    store_run(view.dtype, from + done * bytes, count,
              static_cast<std::byte*>(view.data) + run.offset * memory_bytes, stride);
    done += count;
  }
}

bool is_half(DType dtype) {
  return dtype == DType::F16 || dtype == DType::BF16;
}
bool is_real(DType type) {
  return type == DType::F32 || type == DType::F64;
}

// Rounds an f32 register to what f16 or bf16 can hold.
void round_register(DType dtype, std::byte* values, std::int64_t lanes) {
  float* x = reinterpret_cast<float*>(values);
  std::uint16_t halves[kLanes];
  for (std::int64_t i = 0; i < lanes; i += kLanes) {
    if (dtype == DType::F16) {
      store_f16(halves, load(x + i));
      store(x + i, load_f16(halves));
    } else {
      store_bf16(halves, load(x + i));
      store(x + i, load_bf16(halves));
    }
  }
}

// Makes a register that holds any value of its own type hold values of `dtype`.
void fit_register(DType dtype, Overflow overflow, std::byte* values, std::int64_t lanes) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16:
      round_register(dtype, values, lanes);
      break;
    case DType::I8:
      fit_integers<std::int8_t, std::int32_t>(overflow, values, lanes);
      break;
    case DType::U8:
      fit_integers<std::uint8_t, std::int32_t>(overflow, values, lanes);
      break;
    case DType::I16:
      fit_integers<std::int16_t, std::int32_t>(overflow, values, lanes);
      break;
    case DType::U32:
      fit_integers<std::uint32_t, std::int64_t>(overflow, values, lanes);
      break;
    default:
      break;
  }
}

// Converts a register of type `have` to one that holds `dtype`, rounding once: reals to nearest even; reals
// to integers toward zero, saturating; integers to integers modulo 2^n. `from` and `to` must not overlap.
void convert_values(DType have, const std::byte* from, DType dtype, std::byte* to, std::int64_t lanes) {
  if (is_half(dtype) && have != DType::F32 && have != DType::Bool) {
    narrow_to_odd(have, from, to, lanes);
  } else {
    convert_register(have, from, register_type(dtype), to, lanes);
  }
  fit_register(dtype, is_real(have) ? Overflow::Saturate : Overflow::Wrap, to, lanes);
}

void run_load(const Machine& machine, const StripInstruction& instruction) {
  const TensorView& view = machine.call->inputs[instruction.a];
  const DType own = register_type(view.dtype);
  std::byte* result = register_at(machine, instruction.result);
  if (instruction.dtype == view.dtype || instruction.dtype == own) {
    load_strip(machine, view, result);
  } else {
    load_strip(machine, view, machine.temporary);
    convert_values(own, machine.temporary, instruction.dtype, result, machine.lanes);
  }
}

void run_store(const Machine& machine, const StripInstruction& instruction) {
  const TensorView& view = machine.call->outputs[instruction.b];
  const DType have = machine.types[instruction.a];
  const std::byte* from = register_at(machine, instruction.a);
  if (have != view.dtype) {
    convert_values(have, from, view.dtype, machine.temporary, machine.lanes);
    from = machine.temporary;
  }
  store_strip(machine, from, view);
}

void run_cast(const Machine& machine, const StripInstruction& instruction) {
  const DType have = machine.types[instruction.a];
  const std::byte* from = register_at(machine, instruction.a);
  __builtin_memcpy(machine.temporary, from, static_cast<std::size_t>(machine.lanes * bytes_of(have)));
  convert_values(have, machine.temporary, instruction.dtype, register_at(machine, instruction.result),
                 machine.lanes);
}

void run_constant(const Machine& machine, const StripInstruction& instruction) {
  double* values = reinterpret_cast<double*>(machine.temporary);
  for (std::int64_t i = 0; i < machine.lanes; ++i) values[i] = instruction.constant;
  convert_values(DType::F64, machine.temporary, instruction.dtype, register_at(machine, instruction.result),
                 machine.lanes);
}

void run_operation(const Machine& machine, const StripInstruction& instruction) {
  const std::byte* operands[3] = {};
  const int numbers[3] = {instruction.a, instruction.b, instruction.c};
  for (int i = 0; i < 3; ++i) operands[i] = numbers[i] < 0 ? nullptr : register_at(machine, numbers[i]);
  // select's first operand is its condition; every other op takes the type of its first.
  const int typed = instruction.op == StripOp::Select ? instruction.b : instruction.a;
  std::byte* result = register_at(machine, instruction.result);
  if (instruction.op == StripOp::Select && instruction.a == instruction.result) {
    // Lanes wider than their conditions would overwrite conditions that are still to be read.
    __builtin_memcpy(machine.temporary, operands[0], static_cast<std::size_t>(machine.lanes));
    operands[0] = machine.temporary;
  }
  run_arithmetic(instruction.op, machine.types[typed], operands, result, machine.lanes);
  fit_register(instruction.dtype, Overflow::Wrap, result, machine.lanes);
}

void run_instruction(const Machine& machine, const StripInstruction& instruction) {
  switch (instruction.op) {
    case StripOp::Store:
      run_store(machine, instruction);
      return;
    case StripOp::Load:
      run_load(machine, instruction);
      break;
    case StripOp::Constant:
      run_constant(machine, instruction);
      break;
    case StripOp::Cast:
      run_cast(machine, instruction);
      break;
    default:
      run_operation(machine, instruction);
      break;
  }
  machine.types[instruction.result] = register_type(instruction.dtype);
}

std::int64_t strip_tiles(const Call& call) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < call.outputs[0].rank; ++axis) elements *= call.outputs[0].shape[axis];
  return blocks_of(elements, kElementsPerTile);
}

std::int64_t strip_scratch(const Call& call) {
  const StripCode code = strip_code(call.program);
  return code.register_count * register_bytes(code.wide) + kTemporaryBytes +
         blocks_of(code.register_count, kLine) * kLine;
}

void strip_run(const Call& call, std::int64_t tile) {
  Machine machine;
  machine.call = &call;
  machine.code = strip_code(call.program);
  machine.axes = merge_axes(call.outputs[0], call.inputs, call.input_count, call.outputs, call.output_count);
  machine.stride = register_bytes(machine.code.wide);
  machine.registers = call.scratch;
  machine.temporary = machine.registers + machine.code.register_count * machine.stride;
  machine.types = reinterpret_cast<DType*>(machine.temporary + kTemporaryBytes);
  const std::int64_t end = smaller(machine.axes.elements, (tile + 1) * kElementsPerTile);
  for (machine.begin = tile * kElementsPerTile; machine.begin < end; machine.begin += kStripLength) {
    machine.count = smaller(kStripLength, end - machine.begin);
    machine.lanes = blocks_of(machine.count, kLanes) * kLanes;
    for (int i = 0; i < machine.code.count; ++i) run_instruction(machine, machine.code.instructions[i]);
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("fused_elementwise.strips"), "fused_elementwise", kThisIsa, false, accepts_strips,
     strip_tiles, strip_run, strip_scratch},
};

}  // namespace

KernelList strip_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
