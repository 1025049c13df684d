// fuse-mlp: the gated half of a SwiGLU feed-forward (Shazeer 2020) becomes one launch: both products, and the
// gate on what they give.
//
//   %g = matmul(%x, %wg) {transpose_b = 1}
//   %u = matmul(%x, %wu) {transpose_b = 1}
//   %n = neg(%g)
//   %e = exp(%n)                                          ->      %y = swiglu_mlp(%x, %wg, %wu) body ..
//   %d = add(%e, %one)
//   %s = div(%g, %d)
//   %y = mul(%s, %u)
//
// Also with silu as g * (1 / (1 + exp(-g))). With gelu for silu, (g/2) * (1 + tanh(sqrt(2/pi) (g + 0.044715
// g^3))), the fused node is a geglu_mlp. Both weights are weight inputs of one type. Before assign-precision,
// which then quantises x once for both products, and before fuse-elementwise, which would take the gate.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_mlp(Graph& graph, const PassContext& context);

}  // namespace hone
