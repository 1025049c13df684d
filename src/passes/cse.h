// cse (common subexpression elimination): nodes with the same op, operands, attributes and body compute the
// same value; the first serves the readers of all. The module is not compared: what two layers both compute
// is computed once.
//
//   %1: i32[C] = iota() {..}    %5: i32[C] = iota() {..}      ->      %1: i32[C] = iota() {..}
//
// Never state_append, whose effect is not in its result. After simplify, which makes equal nodes look equal.
#pragma once

#include "passes/pass.h"

namespace hone {

Status eliminate_common_subexpressions(Graph& graph, const PassContext& context);

}  // namespace hone
