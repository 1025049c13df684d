// What a kernel is, seen from the planner and the executor. Kernels know no graph: they meet it only in
// plan/, through the op's name and a signature.
//
// The contract of every kernel:
// - The work is cut into tiles by tile_count(), a function of shapes alone, never of the number of threads.
// Tiles write
//   disjoint outputs and may run in any order on any thread.
// - One row's arithmetic does not depend on how many other rows there are: the same operations in the same
// order.
// - Inputs are valid: ids and positions in range, shapes as the op's type rule says. The engine checks them
// once.
// - No allocation, no exceptions, no global state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "tensor/attributes.h"
#include "tensor/view.h"

namespace hone {

struct StripProgram;  // kernels/strip_program.h

// One operand as the planner knows it: sizes may be symbolic.
struct OperandSpec {
  DType dtype = DType::F32;
  Layout layout = Layout::Strided;
  Shape shape;
  std::vector<Dim> strides;  // in elements; empty for Panel16
  bool is_weight = false;    // static data whose layout the planner may choose
};

// What a kernel is asked to compute.
struct Signature {
  std::string_view op;
  const Attributes* attributes = nullptr;
  std::span<const OperandSpec> inputs;
  std::span<const OperandSpec> outputs;
};

// One launch, with every size known. While the planner asks for scratch sizes, `data` pointers are null.
struct Call {
  const Attributes* attributes = nullptr;
  const StripProgram* program = nullptr;  // elementwise kernels
  const TensorView* inputs = nullptr;
  const TensorView* outputs = nullptr;
  int input_count = 0;
  int output_count = 0;
  std::byte* scratch =
      nullptr;  // of the running thread, scratch_bytes() long, 64-byte aligned, contents undefined
};

struct Kernel {
  std::string_view name;  // "matmul.q8a.panel16.avx2": op, what it is for, ISA level
  std::string_view op;
  Isa isa = Isa::Portable;
  bool reference = false;  // the plain kernel that every other one is checked against
  // Empty if this kernel computes the signature; else what it would need ("needs a row length that is a
  // multiple of 32").
  std::string_view (*accepts)(const Signature& signature) = nullptr;
  std::int64_t (*tile_count)(const Call& call) = nullptr;
  void (*run)(const Call& call, std::int64_t tile) = nullptr;
  std::int64_t (*scratch_bytes)(const Call& call) = nullptr;  // per thread; nullptr: none
  // Its bits are those of its own ISA level, not those of the op's other kernels: left out under --bits
  // portable.
  bool own_bits = false;
};

// All kernels, best first within one op and ISA level, reference kernels last. Valid for the life of the
// program.
std::span<const Kernel> all_kernels();

}  // namespace hone
