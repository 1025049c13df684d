// Elementwise work as a list of strip kernels: a strip is a run of up to kStripLength elements of the
// output's last axes that stays in L1 while all instructions pass over it. One instruction is one elementwise
// op of the op rows. A lane's bits do not depend on its position in the strip nor on the strip's length.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace hone {

inline constexpr std::int64_t kStripLength = 256;

enum class StripOp : std::uint8_t {
  // sources
  Load,      // operand `a` = index into the call's inputs, broadcast to the output's shape by strides of 0
  Constant,  // `constant`, rounded to dtype
  // unary on register a
  Cast,
  Neg,
  Abs,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Tanh,
  Not,
  // binary on registers a, b (same dtype)
  Add,
  Sub,
  Mul,
  Div,
  Max,
  Min,
  Pow,
  Less,
  LessEqual,
  Equal,
  And,
  Or,  // result bool
  // ternary
  Select,  // a (bool) ? b : c
  // sinks
  Store,  // register a to the call's output number `b`
};

struct StripInstruction {
  StripOp op = StripOp::Load;
  DType dtype = DType::F32;  // of the result (of the stored value for Store)
  int result = -1;           // register written
  int a = -1, b = -1, c = -1;
  double constant = 0;
};

// Registers hold strips of one of: f64, f32, i32, i64, bool. Loads and stores convert from and to any
// unquantised type (a load of f16 gives an f32 register). Register numbers are < register_count; each is
// written before it is read; a register may be written again once its value is dead.
struct StripProgram {
  std::vector<StripInstruction> instructions;
  int register_count = 0;
};

}  // namespace hone
