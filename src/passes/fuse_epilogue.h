// fuse-epilogue: what follows a product by a weight on its own columns joins the launch of the product.
//
//   %p = matmul(%x, %w) {transpose_b = 1}
//   %b = add(%p, %bias)                            # a bias [N]
//   %h = reshape(%b) {shape = dims[B, T, 2, 64]}
//   %r = rope(%h, %cos, %sin)
//   %c = cast(%r) {to = "f16"}
//   %s = state_append(%state, %c, %positions)
//   ->
//   %s = projection(%x, %w, %bias, %cos, %sin, %state, %positions) {sections = ..} body ..
//
// A norm of the heads between the reshape and the rope comes with them (Qwen 3, Gemma 3):
//
//   %n = rms_norm(%h, %norm) {eps = 1e-06}
//
//   %p = matmul(%x, %w) {transpose_b = 1}
//   %y = add(%residual, %p)
//   ->
//   %y = projection(%x, %w, %residual) {sections = ..} body ..
//
//   %p = matmul(%x, %w) {transpose_b = 1}
//   %b = add(%p, %bias)
//   .. the nodes of gelu by tanh, or of silu, from %b to %y
//   ->
//   %y = projection(%x, %w, %bias) {sections = ..} body ..
//
//   %g = swiglu_mlp(%x, %wg, %wu)
//   %q = quantize_q8a(%g)
//   ->
//   %q = projection(%x, %wu, %wg) {sections = ..} body ..
//
// Each value in between has one reader, but for those inside an activation. A rope's head is whole panels of
// 16 columns, at most 256. After assign-precision, which makes the casts
// and the quantisations; before fuse-elementwise, which would take the additions.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_epilogue(Graph& graph, const PassContext& context);

}  // namespace hone
