// simplify: small identities that keep every bit.
//
//   x * 1, x / 1, x + -0.0, x - 0.0, neg(neg x)          ->  x
//   integer x + 0, x - 0                                 ->  x
//   cast, reshape, broadcast, permute to the same type    ->  x          (permute: only the identity)
//   reshape(reshape x), permute(permute x)                ->  one reshape, one permute of x
//
// x + 0.0 is not among them: it turns -0.0 into 0.0. After fold-constants, whose results it reads; before
// cse, which then sees equal views as equal nodes.
#pragma once

#include "passes/pass.h"

namespace hone {

Status simplify(Graph& graph, const PassContext& context);

}  // namespace hone
