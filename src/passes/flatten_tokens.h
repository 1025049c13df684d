// flatten-tokens: a step of sequences with different numbers of tokens computes those tokens, and no padding.
// B sequences of T tokens each, [B,T,..], become the N tokens that there are, [1,N,..], behind one another;
// an input `sequence` says whose each is, and only what touches the KV cache asks.
//
//   input %ids "ids": i32[B,T]
//   %x: f32[B,T,64] = gather(%w, %ids)
//   %k1: f32[B,C,2,16] = state_append(%k, %h, %positions)
//   %a: f32[B,T,2,2,16] = attention(%q, %k1, %v1, %positions)
//   ->
//   input %ids "ids": i32[1,N]
//   input %sequence "sequence": i32[1,N]
//   %x: f32[1,N,64] = gather(%w, %ids)
//   %k1: f32[B,C,2,16] = state_append(%k, %h, %positions, %sequence)
//   %a: f32[1,N,2,2,16] = attention(%q, %k1, %v1, %positions, %sequence) body ..
//
// In the body of attention each token looks up the keys of its sequence (gather) and is then a sequence of
// one token. What is known of each sequence (the rotary table's length, i32[B]) becomes known of each token,
// [1,N]. B*T becomes N, so `rows` counts the tokens of the step.
//
// All of the graph or nothing: it is left alone if it has no cache, or if one node does not treat tokens one
// by one: attention without positions or over keys of this step alone, scores that no fused attention
// computes, a state that is assigned (a recurrent cell), a reduction, join or cut along T, a shape that names
// T without B.
//
// After the fusions, whose patterns have B and T as axes of their own and whose bodies it rewrites with them;
// the numbers of a row are the same at any place in any step, so the bits are.
#pragma once

#include "passes/pass.h"

namespace hone {

Status flatten_tokens(Graph& graph, const PassContext& context);

}  // namespace hone
