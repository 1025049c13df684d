// quantize_q8a: rows of f32 to blocks of q8a, as fast/q8a_block.h rounds them.
#include "kernels/fast/matmul_kernels.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/matmul_signatures.h"
#include "kernels/signature_helpers.h"

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

void run(const Call& call, std::int64_t tile) {
  const Sizes s = sizes_of(call);
  const TensorView& x = call.inputs[0];
  const TensorView& y = call.outputs[0];
  const std::int64_t x_stride = x.rank > 1 ? x.strides[x.rank - 2] : 0;
  const std::int64_t terms = attribute_integer(call.attributes, "terms", 1);
  const std::int64_t y_stride = y.rank > 1 ? y.strides[y.rank - 2] / 32 : 0;
  const std::int64_t first = tile * kTileBlocks;
  const std::int64_t end = s.blocks - first < kTileBlocks ? s.blocks : first + kTileBlocks;
  std::int64_t row = first / s.row_blocks;
  std::int64_t block = first % s.row_blocks;
  for (std::int64_t i = first; i < end; ++i) {
    const float* values = static_cast<const float*>(x.data) + row * x_stride + block * 32;
    BlockQ8A* to = static_cast<BlockQ8A*>(y.data) + row * terms * y_stride + block;
    quantize_block(values, to);
    if (terms == 2) quantize_rest(values, *to, to + y_stride);
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
