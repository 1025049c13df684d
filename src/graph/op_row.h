// One row per op: all that hone knows of it above the kernels. A custom op registers a row by the same door
// as the built-in ones.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

enum class OpClass : std::uint8_t {
  Source,       // constant, iota: no tensor input
  Elementwise,  // each output element from the input elements at its place; runs as a strip kernel
  View,         // shares its input's memory; never a launch
  Reduction,    // along one axis
  Contraction,  // matmul and what is built on it
  Data,         // moves elements: gather, concat, copy
  State,        // writes into state
  Fused,        // a body that runs as one launch
};

struct OpRow {
  std::string_view name;
  OpClass op_class = OpClass::Elementwise;
  bool primitive = false;  // in the closed list that models are built from (level O0)
  int min_inputs = 0;
  int max_inputs = 0;  // -1: any number
  // The types of the outputs, or an Error whose message names the broken rule (the caller adds the node's
  // place).
  Result<std::vector<Type>> (*infer)(const Node& node, std::span<const Type> inputs) = nullptr;
  int aliases = -1;  // the input whose memory output 0 shares (views, state_append), or -1
  // Useful arithmetic operations (a fused multiply-add is 2), from the types; nullptr: one per output
  // element.
  Dim (*operations)(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs) = nullptr;
  // Bytes read of each input, where that is not all of it (gather reads rows); nullptr: all of it.
  Dim (*bytes_read)(const Node& node, std::span<const Type> inputs, std::span<const Type> outputs) = nullptr;
  // The input in whose place output number `output` may be written if nobody reads that input afterwards: of
  // the same type, and each element read nowhere but where it is written to, and before that. -1: none;
  // nullptr: none of any output.
  int (*overwrites)(const Node& node, std::size_t output) = nullptr;
  std::string_view summary;  // one line: what it computes
};

// The row named `op`, or nullptr.
const OpRow* find_op(std::string_view op);

// All rows, in the order of registration.
std::vector<const OpRow*> all_ops();

// Adds a row. An error names what is missing in it, or the row that has its name already. `row` must outlive
// the program.
Status register_op(const OpRow* row);

// The registered name nearest to `name` (edit distance at most 2, or half its length), for "did you mean"; or
// empty.
std::string_view nearest_op(std::string_view name);

// The input whose memory output number `output` of the node shares, or -1: by its row, or, in a fused node,
// because its body appends to that state.
int aliased_input(const Node& node, std::size_t output);

// Types of node's outputs by its row. The error's `where` is the op and the node's module.
Result<std::vector<Type>> infer_types(const Graph& graph, const Node& node);

}  // namespace hone
