// simplify: small identities that keep every bit.
//
//   multiply-by-one          x * 1, 1 * x            ->  x
//   divide-by-one            x / 1                   ->  x
//   add-nothing              x + -0.0, integer x + 0 ->  x
//   subtract-zero            x - 0                   ->  x
//   double-negation          neg(neg x)              ->  x
//   cast-to-same-type        cast x to its own type  ->  x
//   reshape-to-same-shape, broadcast-to-same-shape, slice-of-whole, identity-permute, concat-of-one   ->  x
//   reshape-of-reshape       reshape(reshape x)      ->  one reshape of x
//   permute-of-permute       permute(permute x)      ->  one permute of x
//
// Each counts its firings under its name. x + 0.0 is not among them: it turns -0.0 into 0.0. After
// fold-constants, whose results it reads; before cse, which then sees equal views as equal nodes.
#pragma once

#include "passes/pass.h"

namespace hone {

Status simplify(Graph& graph, const PassContext& context);

}  // namespace hone
