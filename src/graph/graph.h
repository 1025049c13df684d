// The intermediate representation: a typed program in SSA form. Nodes are data; what an op means, which types
// it takes and what it costs stands in its op row (graph/op_row.h).
//
// Semantics, once for all ops:
// - Values. Each value is written by exactly one node, or is an input of the graph. Nodes stand in an order
// in which
//   every value is written before it is read; any such order gives the same numbers (except through state,
//   below).
// - Types. A type is an element type and a shape; dims are integers or expressions over the graph's symbols
//   (tensor/dim.h). There are no implicit conversions: elementwise ops take operands of one element type,
//   `cast` changes it. Contractions (matmul, gather) read any float type and give f32.
// - Symbols stand for integers >= 1: B sequences, T tokens of each in this step, C context after this step, R
// rows of logits, N tokens of all sequences of this step.
// - Broadcast. Elementwise ops align shapes at the right; an axis of extent 1 (the integer, not a symbol)
// repeats.
// - Numbers. Floating point is IEEE 754, round to nearest even, subnormals kept. NaN spreads through
// arithmetic; max and
//   min return NaN if an operand is NaN; comparisons with NaN are false. Integer arithmetic wraps modulo 2^n.
//   The order of the additions of a reduction or contraction is the kernel's, and fixed (kernels/kernel.h).
// - Aliasing. View ops (reshape, permute, broadcast, slice) share memory with their input and cost nothing.
// Values are
//   never written twice, except through state.
// - Effects. The only effects are on state: a state is a named input that outlives the step. `state_append`
// writes this
//   step's rows into it at their positions and returns the state as it is afterwards; such a state has
//   exactly one append, and everything that reads the state in this step reads that append's result. Rows
//   beyond a sequence's last position are finite and unspecified; a reader masks them. `state_assign`
//   replaces all of a state, as a recurrent cell does: such a state has exactly one assign, and what reads
//   the state as it was before stands before the assign.
// - Padding. A token whose position is negative is padding: it is not stored into state, and its outputs are
//   unspecified and never read.
// - Flattened steps. A dense step has T tokens of each of B sequences, [B,T,..], the shorter ones padded; a
//   flattened one has its N tokens behind one another, [1,N,..], and an input `sequence` i32 [1,N] that says
//   whose each is: not descending, so that the tokens of a sequence stand together. States stay [B,C,..].
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/attributes.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace hone {

struct Type {
  DType dtype = DType::F32;
  Shape shape;
  friend bool operator==(const Type&, const Type&) = default;
};

std::string type_to_string(const Type& type);  // "f32[B,T,576]"

// Bytes of a value of this type. For block-quantised types the last dim must be a constant multiple of the
// block.
Dim type_bytes(const Type& type);

using ValueId = std::int32_t;

struct Value {
  Type type;
  std::string name;  // how it is printed after '%'; empty: its id
};

struct Graph;

struct Node {
  std::string op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::string module;  // where in the model it comes from: "layers.3.attn.q_proj"
  std::shared_ptr<const Graph>
      body;  // fused nodes: what they compute, inputs and outputs in the node's order
};

enum class InputKind : std::uint8_t {
  Input,   // given anew at each step
  Weight,  // static; its name is the tensor's name in the checkpoint
  State,   // outlives the step
};

struct GraphInput {
  std::string name;
  InputKind kind = InputKind::Input;
  ValueId value = -1;
};

struct GraphOutput {
  std::string name;
  ValueId value = -1;
};

struct Graph {
  std::string name;
  std::string symbols;  // the letters that dims may mention
  std::vector<Value> values;
  std::vector<GraphInput> inputs;
  std::vector<GraphOutput> outputs;
  std::vector<GraphOutput> state_updates;  // name of the state, and its value after the step
  std::vector<Node> nodes;                 // in an order of execution

  ValueId add_value(Type type, std::string value_name = {});
  const Type& type(ValueId value) const { return values[static_cast<std::size_t>(value)].type; }
  std::string value_name(ValueId value) const;  // "%12"
  const GraphInput* find_input(std::string_view input_name) const;
};

// For each value: the index of the node that writes it (-1 for inputs), and the nodes that read it. A value
// that is an output of the graph or a state update has `escapes` set.
struct UseMap {
  std::vector<int> producer;
  std::vector<std::vector<int>> users;
  std::vector<bool> escapes;

  explicit UseMap(const Graph& graph);
  // The value has this one user and does not leave the graph.
  bool only_used_by(ValueId value, int node) const;
};

}  // namespace hone
