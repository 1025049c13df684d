// fold-norm: the norm between two projections is no launch of its own. A row's factor r = 1 / sqrt(mean(x^2)
// + eps) may be applied behind the products, (x * w * r) W^T = r * ((x * w) W^T), so the launch that makes x
// also makes x * w, in q8a where that was asked for, and the sums of the squares of each 32 columns; those
// that read the norm add the sums up for themselves.
//
//   %x = projection(%a, %w1, %residual)
//   %n = rms_norm(%x, %w) {eps = 1e-06}
//   %y = projection(%n, %w2, ..)
//   ->
//   %x, %s, %u = projection(%a, %w1, %residual, %w)
//   %y = projection(%s, %w2, .., %u) {row_sums = .., eps = 1e-06}
//
// %n is read by projections, or products that become one, and by nothing else; x has a constant number of
// columns, a multiple of 32. None of them appends to a state: folded there too, the norm saves one more
// launch a layer, and int8 rounds other values; the largest difference of SmolLM2's logits, one draw of that
// rounding, was 0.57 then and is 0.37 so. Last of the passes that make projections.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fold_norm(Graph& graph, const PassContext& context);

}  // namespace hone
