// dce (dead code elimination): removes nodes whose results nobody reads, and then those that only they read.
// Inputs of the graph stay: they are its interface.
//
//   %1: f32[T] = exp(%x)    output "y" %x        ->        output "y" %x
//
// Last in the pipeline, for what the passes before it have left without readers.
#pragma once

#include "passes/pass.h"

namespace hone {

Status eliminate_dead_code(Graph& graph, const PassContext& context);

}  // namespace hone
