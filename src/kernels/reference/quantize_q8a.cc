// quantize_q8a: x f32 [..,K] to int8 blocks along the last axis, as BlockQ8A (tensor/block_formats.h) defines
// them. A tile is one row.
#include <cstring>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"
#include "tensor/block_formats.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kBlock = 32;

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t terms = call.attributes->integer("terms", 1);
  const std::int64_t from = offset_of(without_last(x, 1), tile);
  for (std::int64_t i = 0; i < last_extent(x); i += kBlock) {
    double wide[kBlock];
    float values[kBlock];
    load_reals(x, from + i * last_stride(x), last_stride(x), kBlock, wide);
    for (std::int64_t j = 0; j < kBlock; ++j) values[j] = static_cast<float>(wide[j]);
    for (std::int64_t term = 0; term < terms; ++term) {
      const BlockQ8A block = encode_q8a_block(values);
      const std::int64_t to = offset_of(without_last(out, 1), tile * terms + term);
      std::memcpy(static_cast<std::byte*>(out.data) + dtype_bytes(DType::Q8A, to + i), &block, sizeof(block));
      for (std::int64_t j = 0; j < kBlock; ++j)
        values[j] -= block.scale * static_cast<float>(block.quants[j]);
    }
  }
}

std::string_view accepts(const Signature& signature) {
  const OperandSpec& x = signature.inputs[0];
  if (x.dtype != DType::F32 || signature.outputs[0].dtype != DType::Q8A) return "needs f32 in and q8a out";
  const auto width = x.shape.empty() ? std::nullopt : x.shape.back().as_constant();
  if (!width || *width % kBlock != 0) return "needs a row length that is a multiple of 32";
  return needs_strided(signature);
}

constexpr Kernel kKernels[] = {{.name = "quantize_q8a.reference",
                                .op = "quantize_q8a",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run}};

}  // namespace

KernelList quantize_q8a_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
