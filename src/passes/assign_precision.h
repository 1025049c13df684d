// assign-precision: gives the KV cache and the activations of quantised matmuls the types that the precision
// policy asks for. It does nothing where the policy is exact.
//
//   KV (policy.kv = f16, bf16 or q8_0): each f32 state, and what is appended to it.
//     state %s "k.0": f32[B,C,2,64]                      state %s "k.0": f16[B,C,2,64]
//     %1 = state_append(%s, %rows, %positions)     ->    %2: f16[B,T,2,64] = cast(%rows) {to = "f16"}
//                                                        %1: f16[B,C,2,64] = state_append(%s, %2, %positions)
//     Views follow; attention and the right operand of matmul read the new type as it is; other readers get a
//     cast. Rows for a state of q8_0 stay f32 and the append rounds them to blocks; there attention alone
//     reads the new type.
//
//   Activations (policy.int8_activations): a matmul or swiglu_mlp with a weight that has dot numbers, K a
//   multiple of 32.
//     %y = matmul(%x, %w) {transpose_b = 1}        ->    %q: q8a[B,T,576] = quantize_q8a(%x)
//                                                        %y = matmul(%q, %w) {transpose_b = 1}
//     One quantize_q8a serves all that read one x.
//
//   Of weights of bf16 (policy.bf16_activations): a cast to bf16 in its place. Not for expert_matmul.
//     %q: bf16[B,T,576] = cast(%x) {to = "bf16"}
//     %y = matmul(%q, %w) {transpose_b = 1}
//
//   Two terms (policy.two_terms, and always the product that the graph ends with, the logits): what the first
//   rounding leaves is rounded to q8a as well. No kernel has that for expert_matmul, whose x stays f32 then.
//     %y = matmul(%x, %w) {transpose_b = 1}
//     ->
//     %q: q8a[R,2,576] = quantize_q8a(%x) {terms = 2}
//     %y = projection(%q, %w) {sections = .., terms = 2} body ..
//
//   policy.products and policy.states say otherwise for single weights and states.
//
// At every level, for --kv holds at every level. After the named fusions (swiglu_mlp has one x to quantise,
// attention has readers for every cache type) and before fuse-elementwise, which takes the casts into its
// launches.
#pragma once

#include "passes/pass.h"

namespace hone {

Status assign_precision(Graph& graph, const PassContext& context);

}  // namespace hone
