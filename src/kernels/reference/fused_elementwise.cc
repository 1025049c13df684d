// A strip program, instruction by instruction; each register is rounded to its type, so the numbers are those
// of the same ops run one node at a time.
#include "kernels/reference/list.h"
#include "kernels/reference/strip_ops.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kTileElements = 4096;

std::int64_t tile_count(const Call& call) {
  return ceil_divide(element_count(call.outputs[0]), kTileElements);
}

std::int64_t scratch_bytes(const Call& call) {
  return static_cast<std::int64_t>(sizeof(Strip)) * call.program->register_count;
}

void execute(const Call& call, const StripInstruction& step, std::int64_t first, std::int64_t count,
             Strip* registers) {
  const TensorView& shape = call.outputs[0];
  switch (step.op) {
    case StripOp::Load: {
      const TensorView& view = call.inputs[step.a];
      Strip& out = registers[step.result];
      load_strip(view, broadcast_offset(view, shape, first), broadcast_stride(view, shape), count, out);
      return convert_strip(out, step.dtype, count);
    }
    case StripOp::Constant: {
      Strip& out = registers[step.result];
      for (std::int64_t i = 0; i < count; ++i) out.real[i] = step.constant;
      out.dtype = DType::F64;
      return convert_strip(out, step.dtype, count);
    }
    case StripOp::Store: {
      const TensorView& view = call.outputs[step.b];
      Strip copy = registers[step.a];  // storing converts; the register lives on
      return store_strip(view, offset_of(view, first), last_stride(view), count, copy);
    }
    default: {
      const Strip& a = registers[step.a];
      const Strip& b = step.b >= 0 ? registers[step.b] : a;
      const Strip& c = step.c >= 0 ? registers[step.c] : a;
      return apply_strip(step.op, step.dtype, a, b, c, count, registers[step.result]);
    }
  }
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& out = call.outputs[0];
  const std::int64_t begin = tile * kTileElements;
  const std::int64_t end = std::min(begin + kTileElements, element_count(out));
  auto* registers = reinterpret_cast<Strip*>(call.scratch);
  for_each_run(out, begin, end, kStripLength, [&](std::int64_t first, std::int64_t count) {
    for (const StripInstruction& step : call.program->instructions)
      execute(call, step, first, count, registers);
  });
}

constexpr Kernel kKernels[] = {{.name = "fused_elementwise.reference",
                                .op = "fused_elementwise",
                                .reference = true,
                                .accepts = needs_plain,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList fused_elementwise_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
