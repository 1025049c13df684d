// quantize_q8a: rows of f32 to blocks of q8a (tensor/block_formats.h). Per block of 32 values x:
//   scale      = max|x| / 127, rounded to f32
//   quants[j]  = x[j] / scale, rounded to f32 and then to the nearest integer, ties to even, held in -127 ..
//   127 (a
//                subnormal scale is so coarse that the quotient may lie above)
//   sum        = scale * sum of quants, rounded to f32
// A scale of 0 (all x are 0 or tiny) has quants of 0. A block with an infinity or a NaN has scale and sum NaN
// and quants of 0: every dot with it is NaN.
#include "kernels/fast/matmul_kernels.h"
#include "kernels/fast/vec16.h"
#include "kernels/matmul_signatures.h"
#include "tensor/block_formats.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kTileBlocks = 32;

struct Sizes {
  std::int64_t row_blocks, blocks;  // of one row, of all rows
};

Sizes sizes_of(const Call& call) {
  const TensorView& x = call.inputs[0];
  std::int64_t rows = 1;
  for (int axis = 0; axis + 1 < x.rank; ++axis) rows *= x.shape[axis];
  const std::int64_t row_blocks = x.shape[x.rank - 1] / 32;
  return {row_blocks, rows * row_blocks};
}

std::int64_t tile_count(const Call& call) {
  return (sizes_of(call).blocks + kTileBlocks - 1) / kTileBlocks;
}

void quantize_block(const float* x, BlockQ8A* out) {
  const Vec16 a = load(x);
  const Vec16 b = load(x + 16);
  const Mask16 finite = mask_and(equal(sub(a, a), zero16()), equal(sub(b, b), zero16()));
  if (mask_bits(finite) != 0xffff) {
    out->scale = __builtin_nanf("");
    out->sum = __builtin_nanf("");
    out->quant_sum = 0;
    for (int j = 0; j < 32; ++j) out->quants[j] = 0;
    return;
  }
  const float scale = max_lane(max(absolute(a), absolute(b))) / 127.0F;
  out->scale = scale;
  const Vec16 divisor = broadcast(scale == 0.0F ? __builtin_inff() : scale);
  const Vec16 limit = broadcast(127.0F);
  const Vec16i low = to_i32(max(min(div(a, divisor), limit), negate(limit)));
  const Vec16i high = to_i32(max(min(div(b, divisor), limit), negate(limit)));
  store_i8(out->quants, low);
  store_i8(out->quants + 16, high);
  // Whole numbers of at most 32 * 127: exact in f32 in any order.
  const float quant_sum = sum(to_f32(add_i(low, high)));
  out->quant_sum = static_cast<std::int32_t>(quant_sum);
  out->sum = scale * quant_sum;
}

void run(const Call& call, std::int64_t tile) {
  const Sizes s = sizes_of(call);
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const std::int64_t x_stride = x.rank > 1 ? x.strides[x.rank - 2] : 0;
  const std::int64_t y_stride = y.rank > 1 ? y.strides[y.rank - 2] / 32 : 0;
  const std::int64_t first = tile * kTileBlocks;
  const std::int64_t end = s.blocks - first < kTileBlocks ? s.blocks : first + kTileBlocks;
  std::int64_t row = first / s.row_blocks;
  std::int64_t block = first % s.row_blocks;
  for (std::int64_t i = first; i < end; ++i) {
    quantize_block(static_cast<const float*>(x.data) + row * x_stride + block * 32,
                   static_cast<BlockQ8A*>(y.data) + row * y_stride + block);
    if (++block == s.row_blocks) {
      block = 0;
      ++row;
    }
  }
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("quantize_q8a"), "quantize_q8a", kThisIsa, false,
                                accepts_quantize_q8a, tile_count, run, nullptr}};

}  // namespace

KernelList quantize_q8a_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
