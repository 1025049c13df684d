// fold-constants: a node that reads only constants becomes a constant, computed by the context's evaluator
// with the reference kernel of its op.
//
//   %1: f32[] = constant() {.. 2.0}                        %1: f32[] = constant() {.. 2.0}
//   %2: f32[] = sqrt(%1)                             ->    %2: f32[] = constant() {.. 1.414..}
//
// An iota of a constant extent, which is a launch in every step, is one as well. A broadcast of a constant
// and views of it stay, for they cost nothing and their elements would take memory; what computes with them
// is folded.
//
//   %1: i32[32] = iota() {axis = 0, shape = dims[32]}
//   %2: f32[32] = cast(%1) {to = "f32"}
//   %3: f32[32] = broadcast(%factor) {shape = dims[32]}
//   %4: f32[32] = mul(%2, %3)                     ->    %4: f32[32] = constant() {..}
//
// First in the pipeline: what it leaves is what simplify's rules look for (x * 1). Not folded: results of
// more than kMaxFoldedElements elements (they would grow the program, and a constant is not shared with the
// checkpoint's mapping), block-quantised results, and 64-bit integers beyond 2^53, which a constant cannot
// hold.
#pragma once

#include "passes/pass.h"

namespace hone {

inline constexpr std::int64_t kMaxFoldedElements = 65536;

Status fold_constants(Graph& graph, const PassContext& context);

}  // namespace hone
