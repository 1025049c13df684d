// fold-constants: a node that reads only constants becomes a constant, computed by the context's evaluator
// with the reference kernel of its op.
//
//   %1: f32[] = constant() {.. 2.0}                        %1: f32[] = constant() {.. 2.0}
//   %2: f32[] = sqrt(%1)                             ->    %2: f32[] = constant() {.. 1.414..}
//
// First in the pipeline: what it leaves is what simplify's rules look for (x * 1). Not folded: results of
// more than kMaxFoldedElements elements (they would grow the program, and a constant is not shared with the
// checkpoint's mapping), broadcasts (a view is free; its copy is not), iota (as cheap as reading it back),
// block-quantised results, and 64-bit integers beyond 2^53, which a constant cannot hold.
#pragma once

#include "passes/pass.h"

namespace hone {

inline constexpr std::int64_t kMaxFoldedElements = 65536;

Status fold_constants(Graph& graph, const PassContext& context);

}  // namespace hone
