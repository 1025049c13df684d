// quantise-weights: matrices that the checkpoint has in f32, f16 or bf16 become q8_0 as they are loaded,
// where the precision policy asks for it (policy.weights, --weights q8_0). `hone quantize` writes a file
// once; this reads the file that is there.
//
//   weight %w "blk.0.attn_q.weight": f16[576,576]   ->   weight %w "blk.0.attn_q.weight": q8_0[576,576]
//   %y = matmul(%x, %w) {transpose_b = 1}                %y = matmul(%x, %w) {transpose_b = 1}
//
// Only matrices that nothing but products read, in whole blocks of 32 along K: a table that gather reads
// stays, tied to the logits or not. So does a router, whose rounding would choose other experts: what top_k
// reads without another product in between. At every level, for what --weights asks holds at every level;
// before assign-precision, which gives quantised weights int8 activations.
#pragma once

#include "passes/pass.h"

namespace hone {

Status quantise_weights(Graph& graph, const PassContext& context);

}  // namespace hone
