// rope: pair p of the last axis is turned by the angle whose cosine and sine are cos[b,t,p], sin[b,t,p] (Su
// et al., "RoFormer", 2021). x [B,T,..,E], cos and sin [B,T,R/2]. Pairs are (2p, 2p+1) if interleaved, else
// (p, p + R/2); dims from R on pass through. A tile is one row of E values.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.outputs[0], 1));
}

std::int64_t scratch_bytes(const Call& call) {
  return (last_extent(call.outputs[0]) + 2 * last_extent(call.inputs[1])) * 8;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(x);
  const std::int64_t pairs = last_extent(call.inputs[1]);
  const bool interleaved = call.attributes->integer("interleaved") != 0;
  auto* values = reinterpret_cast<double*>(call.scratch);
  double* turns[2] = {values + width, values + width + pairs};
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  std::int64_t heads = 1;  // rows of one token
  for (int axis = 2; axis + 1 < x.rank; ++axis) heads *= x.shape[axis];
  TensorView tokens = x;  // [B,T]
  tokens.rank = 2;
  for (int i = 0; i < 2; ++i) {
    const TensorView& table = call.inputs[1 + i];
    load_reals(table, broadcast_offset(without_last(table, 1), tokens, tile / heads), last_stride(table),
               pairs, turns[i]);
  }
  for (std::int64_t p = 0; p < pairs; ++p) {
    double& first = values[interleaved ? 2 * p : p];
    double& second = values[interleaved ? 2 * p + 1 : p + pairs];
    const double turned = first * turns[0][p] - second * turns[1][p];
    second = second * turns[0][p] + first * turns[1][p];
    first = turned;
  }
  store_reals(out, offset_of(without_last(out, 1), tile), last_stride(out), width, values);
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].shape.size() < 3) return "needs x [B,T,..,E]";
  return needs_plain(signature);
}

constexpr Kernel kKernels[] = {{.name = "rope.reference",
                                .op = "rope",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList rope_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
