// fuse-norm: a root-mean-square norm along the last axis (Zhang and Sennrich 2019) becomes one launch.
//
//   %2 = mul(%x, %x)
//   %3 = reduce_mean(%2) {axis = -1, keep_dims = 1}
//   %4 = add(%3, %eps)
//   %5 = rsqrt(%4)                                        ->      %7 = rms_norm(%x, %w) {eps = 1e-05} body ..
//   %6 = mul(%x, %5)
//   %7 = mul(%6, %w)
//
// Also with the mean as a sum times 1/D or over D, x^2 as a power, and the root as 1 / sqrt or as a divisor.
// `w` is f32 [D], `eps` a constant. Where w is the sum of an f32 [D] and a constant (Gemma multiplies by 1 +
// w), the constant becomes the attribute `offset`. After fuse-attention and before fuse-elementwise, which
// would take the products apart.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_norm(Graph& graph, const PassContext& context);

}  // namespace hone
