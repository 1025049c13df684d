// rope(x [B,T,(heads axes..),E], cos f32 [B,T,R/2], sin f32 [B,T,R/2]) {interleaved} -> x's shape, f32:
// rotary position embedding (Su et al. 2021). Rotates the pairs (2i, 2i+1) or (i, i + R/2) by the angle of i;
// dims >= R pass through.
//   first' = first * cos - second * sin        second' = second * cos + first * sin
// Each product and each sum is rounded, as in the chain of primitive ops. The output may be the input.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/rope_row.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kTokensPerTile = 4;

std::int64_t rope_tiles(const Call& call) {
  return blocks_of(call.inputs[0].shape[0] * call.inputs[0].shape[1], kTokensPerTile);
}

// The view of one token's heads: the axes after [B,T].
TensorView heads_of(const TensorView& view, std::int64_t b, std::int64_t t) {
  TensorView heads = view;
  heads.data = static_cast<float*>(view.data) + b * view.strides[0] + t * view.strides[1];
  heads.rank = view.rank - 2;
  for (int axis = 0; axis < heads.rank; ++axis) {
    heads.shape[axis] = view.shape[axis + 2];
    heads.strides[axis] = view.strides[axis + 2];
  }
  return heads;
}

void rope_token(const Call& call, std::int64_t b, std::int64_t t, bool interleaved) {
  const TensorView& cos_table = call.inputs[1];
  const TensorView& sin_table = call.inputs[2];
  const TensorView x = heads_of(call.inputs[0], b, t);
  const TensorView out = heads_of(call.outputs[0], b, t);
  const float* cos = static_cast<const float*>(cos_table.data) + token_offset(cos_table, b, t);
  const float* sin = static_cast<const float*>(sin_table.data) + token_offset(sin_table, b, t);
  const std::int64_t half = cos_table.shape[2];
  const std::int64_t rest = x.shape[x.rank - 1] - 2 * half;
  const std::int64_t heads = row_count(x);
  for (std::int64_t head = 0; head < heads; ++head) {
    const float* from = static_cast<const float*>(x.data) + row_offset(x, head);
    float* to = static_cast<float*>(out.data) + row_offset(out, head);
    if (interleaved) {
      rotate_pairs(from, cos, sin, half, to);
    } else {
      rotate_halves(from, cos, sin, half, to);
    }
    if (from != to && rest > 0)
      __builtin_memcpy(to + 2 * half, from + 2 * half, static_cast<std::size_t>(rest) * 4);
  }
}

void rope_run(const Call& call, std::int64_t tile) {
  const std::int64_t tokens = call.inputs[0].shape[1];
  const std::int64_t end = smaller(call.inputs[0].shape[0] * tokens, (tile + 1) * kTokensPerTile);
  const bool interleaved = attribute_integer(call.attributes, "interleaved", 0) != 0;
  for (std::int64_t i = tile * kTokensPerTile; i < end; ++i)
    rope_token(call, i / tokens, i % tokens, interleaved);
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("rope.f32"), "rope", kThisIsa, false, accepts_rope, rope_tiles, rope_run, nullptr},
};

}  // namespace

KernelList rope_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
