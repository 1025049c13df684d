// The text form of a graph: printed by --dump and hone-opt, read back by hone-opt and by the tests of passes.
//
//   graph "mlp" symbols(B, T) {
//     input %x "x": f32[B,T,64]
//     weight %w "ffn.weight": q4_1[128,64]
//     state %k "k.0": f32[B,C,2,16]
//     %1: f32[B,T,128] = matmul(%x, %w) {transpose_b = 1} @"layers.0.ffn.up_proj"
//     %2: f32[B,T,128] = fused_elementwise(%1) body "relu" symbols(B, T) { .. }
//     output "y" %2
//     update "k.0" %7
//   }
//
// Attribute values: integers, reals (always with '.', 'e', inf or nan), strings, ints[..], reals[..],
// dims[..].
// '#' starts a comment to the end of the line. print(parse(print(g))) == print(g).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

std::string print_graph(const Graph& graph);

// `{axis = 0, eps = 1e-05}`, or empty. Equal texts mean equal attributes, bit for bit.
std::string print_attributes(const Attributes& attributes);

// An error (Fault::User) names line and column. The graph is not verified; call verify().
Result<Graph> parse_graph(std::string_view text);

}  // namespace hone
