// The elementwise ops, one kernel each: a tile is a range of the output in row-major
// order.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"
#include "kernels/reference/strip_ops.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kTileElements = 4096;

std::int64_t tile_count(const Call& call) {
  return ceil_divide(element_count(call.outputs[0]), kTileElements);
}

void run_op(StripOp op, const Call& call, std::int64_t tile) {
  const TensorView& out = call.outputs[0];
  const std::int64_t begin = tile * kTileElements;
  const std::int64_t end = std::min(begin + kTileElements, element_count(out));
  Strip operands[3];
  Strip result;
  for_each_run(out, begin, end, kStripLength, [&](std::int64_t first, std::int64_t count) {
    for (int i = 0; i < call.input_count; ++i) {
      const TensorView& view = call.inputs[i];
      load_strip(view, broadcast_offset(view, out, first), broadcast_stride(view, out), count, operands[i]);
    }
    apply_strip(op, out.dtype, operands[0], operands[1], operands[2], count, result);
    store_strip(out, offset_of(out, first), last_stride(out), count, result);
  });
}

template <StripOp Op>
void run(const Call& call, std::int64_t tile) {
  run_op(Op, call, tile);
}

template <StripOp Op>
constexpr Kernel kernel(std::string_view name, std::string_view op) {
  return Kernel{.name = name,
                .op = op,
                .reference = true,
                .accepts = needs_plain,
                .tile_count = tile_count,
                .run = run<Op>};
}

bool is_cast_block(DType dtype) {
  return dtype == DType::Q8A || dtype == DType::Q8_0;
}

// cast alone reads blocks of q8a and q8_0, as the numbers that they stand for; a tile is one row then,
// decoded in double.
bool reads_blocks(const Call& call) {
  return is_cast_block(call.inputs[0].dtype);
}

std::int64_t cast_tile_count(const Call& call) {
  return reads_blocks(call) ? element_count(without_last(call.outputs[0], 1)) : tile_count(call);
}

std::int64_t cast_scratch_bytes(const Call& call) {
  return reads_blocks(call) ? last_extent(call.outputs[0]) * 8 : 0;
}

void run_cast(const Call& call, std::int64_t tile) {
  if (!reads_blocks(call)) return run_op(StripOp::Cast, call, tile);
  const TensorView& blocks = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  load_reals(blocks, offset_of(without_last(blocks, 1), tile), last_stride(blocks), width, values);
  store_reals(out, offset_of(without_last(out, 1), tile), last_stride(out), width, values);
}

std::string_view cast_accepts(const Signature& signature) {
  if (!is_cast_block(signature.inputs[0].dtype)) return needs_plain(signature);
  if (dtype_row(signature.outputs[0].dtype).is_quantised || !dtype_row(signature.outputs[0].dtype).is_float)
    return "needs a float result";
  return needs_strided(signature);
}

constexpr Kernel kKernels[] = {
    Kernel{.name = "cast.reference",
           .op = "cast",
           .reference = true,
           .accepts = cast_accepts,
           .tile_count = cast_tile_count,
           .run = run_cast,
           .scratch_bytes = cast_scratch_bytes},
    kernel<StripOp::Neg>("neg.reference", "neg"),
    kernel<StripOp::Abs>("abs.reference", "abs"),
    kernel<StripOp::Exp>("exp.reference", "exp"),
    kernel<StripOp::Log>("log.reference", "log"),
    kernel<StripOp::Sqrt>("sqrt.reference", "sqrt"),
    kernel<StripOp::Rsqrt>("rsqrt.reference", "rsqrt"),
    kernel<StripOp::Sin>("sin.reference", "sin"),
    kernel<StripOp::Cos>("cos.reference", "cos"),
    kernel<StripOp::Tanh>("tanh.reference", "tanh"),
    kernel<StripOp::Not>("not.reference", "not"),
    kernel<StripOp::Add>("add.reference", "add"),
    kernel<StripOp::Sub>("sub.reference", "sub"),
    kernel<StripOp::Mul>("mul.reference", "mul"),
    kernel<StripOp::Div>("div.reference", "div"),
    kernel<StripOp::Max>("max.reference", "max"),
    kernel<StripOp::Min>("min.reference", "min"),
    kernel<StripOp::Pow>("pow.reference", "pow"),
    kernel<StripOp::Less>("less.reference", "less"),
    kernel<StripOp::LessEqual>("less_equal.reference", "less_equal"),
    kernel<StripOp::Equal>("equal.reference", "equal"),
    kernel<StripOp::And>("and.reference", "and"),
    kernel<StripOp::Or>("or.reference", "or"),
    kernel<StripOp::Select>("select.reference", "select"),
};

}  // namespace

KernelList elementwise_kernels() {
  return {kKernels, static_cast<int>(std::size(kKernels))};
}

}  // namespace hone::kernels::reference
