// fuse-epilogue: what follows a product by a weight on its own columns joins the launch of the product.
//
//   %p = matmul(%x, %w) {transpose_b = 1}
//   %b = add(%p, %bias)                                       a bias [N]
//   %h = reshape(%b) {shape = dims[B, T, 2, 64]}        ->    %s = projection(%x, %w, %bias, %cos, %sin,
//   %state, %positions) %r = rope(%h, %cos, %sin)                                      {sections = ..} body
//   .. %c = cast(%r) {to = "f16"} %s = state_append(%state, %c, %positions)
//
//   %p = matmul(%x, %w) {transpose_b = 1}               ->    %y = projection(%x, %w, %residual) {sections =
//   ..} body .. %y = add(%residual, %p)
//
//   %p = matmul(%x, %w) {transpose_b = 1}
//   %b = add(%p, %bias)                                 ->    %y = projection(%x, %w, %bias) {sections = ..}
//   body .. %y = gelu of %b by tanh, or silu, spelled out
//
//   %g = swiglu_mlp(%x, %wg, %wu)                       ->    %q = projection(%x, %wu, %wg) {sections = ..}
//   body .. %q = quantize_q8a(%g)
//
// Each value in between has one reader. A rope's head is whole panels of 16 columns, at most 256. A
// quantisation of two terms stays. After
// assign-precision, which makes the casts and the quantisations; before fuse-elementwise, which would take
// the additions.
#pragma once

#include "passes/pass.h"

namespace hone {

Status fuse_epilogue(Graph& graph, const PassContext& context);

}  // namespace hone
