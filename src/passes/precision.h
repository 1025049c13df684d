// Which types activations and the KV cache take unless told otherwise.
#pragma once

#include "base/isa.h"
#include "passes/pass.h"
#include "tensor/dtype.h"

namespace hone {

// The policy of `level` for a model most of whose weight bytes are of `dominant_weight_type`, on `isa`. Below
// O3 it is exact: f32 activations and f32 cache.
//
//   weights         portable, avx2, avx512     amx
//   f64, f32        f32 activations, f32 KV    the same
//   f16             f32 activations, f16 KV    the same: bf16 would take 3 bits of every weight and
//   activation bf16            f32 activations, f16 KV    bf16 activations, f16 KV: tiles have 13 times the
//   rate of f32 quantised       int8 blocks, f16 KV        the same (the int8 dots exist on every level)
//
// KV is f16, not bf16: keys and values are of moderate size, where f16 keeps 3 more bits of mantissa.
PrecisionPolicy default_policy(Level level, DType dominant_weight_type, Isa isa);

// --precision: how much of the speed that lower precision gives is taken.
enum class Precision : std::uint8_t {
  Fast,      // the table above
  Balanced,  // int8 activations in two terms everywhere, f32 for bf16
  Exact,     // f32 activations and f32 cache
};
PrecisionPolicy policy_of(Precision precision, const PrecisionPolicy& fast);

}  // namespace hone
