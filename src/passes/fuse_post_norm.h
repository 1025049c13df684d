// fuse-post-norm: a norm behind a block (Gemma 2 and 3, OLMo 2, GLM 4), the addition to the residual stream
// and the norm in front of the next block are one launch: each reads or writes the same row.
//
//   %n = rms_norm(%x, %w) {eps = 1e-06}
//   %y = add(%r, %n)
//   %z: q8a[B,T,640] = rms_norm(%y, %w2) {eps = 1e-06}
//   ->
//   %y, %z = norm_add(%x, %w, %r, %w2) {eps = 1e-06, next_eps = 1e-06} body ..
//
// Without a norm of %y, it is %y alone. Nothing else reads %n; what else reads %y reads it as it was. After
// fold-norm, which takes a norm away where a projection makes its x; before fuse-elementwise, which would
// take the addition.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_post_norm(Graph& graph, const PassContext& context);

}  // namespace hone
