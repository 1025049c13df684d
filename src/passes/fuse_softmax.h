// fuse-softmax: the five nodes of a softmax along the last axis become one launch.
//
//   %m = reduce_max(%x) {axis = -1, keep_dims = 1}
//   %s = sub(%x, %m)
//   %e = exp(%s)                                          ->      %p = softmax(%x) body ..
//   %t = reduce_sum(%e) {axis = -1, keep_dims = 1}
//   %p = div(%e, %t)
//
// Before fuse-attention, which looks for the softmax between its two products.
#pragma once

#include <optional>

#include "passes/match.h"
#include "passes/pass.h"

namespace hone {

Status fuse_softmax(Graph& graph, const PassContext& context);

// The operand of the softmax whose result is `value`, spelled out or already one node; its nodes become part
// of `pattern`.
std::optional<ValueId> match_softmax(Pattern& pattern, ValueId value);

}  // namespace hone
