// fuse-rope: the rotary position embedding (Su et al. 2021) of x [B,T,(heads..),E] becomes one launch. Two
// spellings, c and s being cos and sin f32 [B,T,R/2], reshaped to x's rank:
//
//   half:         first = slice(x, 0..R/2), second = slice(x, R/2..R)
//                 concat(first*c - second*s, second*c + first*s)
//   interleaved:  pairs = reshape(x, [..,R/2,2]), first and second = slices of its last axis, reshaped to
//   [..,R/2]
//                 reshape(concat of both sums as [..,R/2,1], [..,R])
//   ->            rope(x, cos, sin) {interleaved = 0 | 1} body ..
//
// If x is a slice 0..R of wider heads and the result is joined with the slice R..E, the whole is one rope as
// well. Before fuse-elementwise, which would take the products; after fuse-norm only by the order of the
// model.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_rope(Graph& graph, const PassContext& context);

}  // namespace hone
