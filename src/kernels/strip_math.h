// Strip functions that come from the C library, and so are compiled once, outside the ISA objects. f32 goes
// through f64 and is rounded once; f64 is what the C library gives. Their bits are the same on every ISA
// level of one machine.
#pragma once

#include <cstdint>

#include "kernels/strip_program.h"

namespace hone::kernels {

// result[i] = op(a[i]) for `op` one of Exp, Log, Sqrt, Rsqrt, Sin, Cos, Tanh; `dtype` (f64, f32, i32, i64) is
// that of both registers. result may be a.
void strip_function(StripOp op, DType dtype, const void* a, void* result, std::int64_t count);

// result[i] = a[i] to the power b[i].
void strip_power(DType dtype, const void* a, const void* b, void* result, std::int64_t count);

}  // namespace hone::kernels
