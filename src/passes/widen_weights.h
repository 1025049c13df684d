// widen-weights: a vector of f16 or bf16 that is read as f32 only is stored as f32, once, when it is loaded.
//
//   weight %w "norm": bf16[64]
//   %f: f32[64] = cast(%w) {to = "f32"}
//   %y = mul(%x, %f)
//   ->
//   weight %f "norm": f32[64]
//   %y = mul(%x, %f)
//
// Norms and biases of checkpoints in 16 bits, whose cast would be a launch in every step. Matrices stay as
// they are: kernels read their types. First, for the fusions look for weights.
#pragma once

#include "passes/pass.h"

namespace hone {

Status widen_weights(Graph& graph, const PassContext& context);

}  // namespace hone
