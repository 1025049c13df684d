// Elementwise nodes -> the strip program that a kernel runs.
#pragma once

#include "base/result.h"
#include "graph/graph.h"
#include "kernels/strip_program.h"

namespace hone {

// The program of one elementwise node of `graph`, or of a fused_elementwise node (its body). Load operand i
// is the node's input i. An input that is a constant of one element becomes an instruction and is not loaded.
// Errors (Hone): an op in the body that has no strip kernel.
Result<StripProgram> build_strip_program(const Graph& graph, const UseMap& uses, const Node& node);

}  // namespace hone
