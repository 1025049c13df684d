// The elementwise ops on strips of double or int64, shared by the single elementwise kernels and
// fused_elementwise.
#pragma once

#include "kernels/reference/elements.h"
#include "kernels/strip_program.h"

namespace hone::kernels::reference {

// A register: up to kStripLength values in `real` (float types) or `integer` (integers, bool), each exactly a
// value of `dtype`.
struct Strip {
  DType dtype;
  double real[kStripLength];
  std::int64_t integer[kStripLength];
};

// Loads a run of `view` with its own dtype.
void load_strip(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                Strip& out);
// Converts in place: rounds to nearest even; to an integer truncated, saturated, NaN gives 0; integers wrap.
void convert_strip(Strip& strip, DType dtype, std::int64_t count);
// Stores, converting to the view's dtype.
void store_strip(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                 Strip& strip);

// out = op(a, b, c), computed in double (or int64, modulo 2^n) and rounded to `dtype` once. Unused operands
// are ignored. `out` may be one of the operands.
void apply_strip(StripOp op, DType dtype, const Strip& a, const Strip& b, const Strip& c, std::int64_t count,
                 Strip& out);

}  // namespace hone::kernels::reference
