// fuse-quantise: a launch whose result only a rounding reads writes it in q8a, or bf16, itself.
//
//   %n: f32[B,T,576] = rms_norm(%x, %w)
//   %q: q8a[B,T,576] = quantize_q8a(%n)
//   ->
//   %q: q8a[B,T,576] = rms_norm(%x, %w) body ..
//
//   %a: f32[B,T,3,3,64] = attention(%p, %k, %v, %positions)
//   %r: f32[B,T,576] = reshape(%a)
//   %q: q8a[B,T,576] = quantize_q8a(%r)
//   ->
//   %a: q8a[B,T,3,3,64] = attention(%p, %k, %v, %positions) body ..
//   %q: q8a[B,T,576] = reshape(%a)
//
// layer_norm as rms_norm; rms_norm and attention with a cast to bf16 behind them. Rows of whole blocks only;
// a norm writes two terms as well, q8a [B,T,2,576], attention does not. After assign-precision, which makes
// the quantisations; products have fuse-epilogue.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_quantise(Graph& graph, const PassContext& context);

}  // namespace hone
