// Which signatures the matmul family of fast kernels computes, and the helpers that its ISA objects call.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace hone::kernels {

// matmul with transpose_b=1: x [..,M,K] of contiguous rows at one distance, w [N,K] in Panel16, f32 out.
// Float: x f32, w of any float or block-quantised type. Int8: x q8a, w of a type with dot numbers
// (tensor/panel_layout.h). Bf16: both of bf16, K a multiple of 32.
std::string_view accepts_matmul_float(const Signature& signature);
std::string_view accepts_matmul_int8(const Signature& signature);
std::string_view accepts_matmul_bf16(const Signature& signature);
// swiglu_mlp: x and out as above, w_gate and w_up [F,D] in Panel16 of one type.
std::string_view accepts_swiglu_float(const Signature& signature);
std::string_view accepts_swiglu_int8(const Signature& signature);
std::string_view accepts_swiglu_bf16(const Signature& signature);
// expert_matmul: x [..,J,K] or [..,1,K] of contiguous rows anywhere, w [X,N,K] in Panel16, experts i32
// [..,J], contiguous or one [J] for all rows.
std::string_view accepts_expert_matmul_float(const Signature& signature);
std::string_view accepts_expert_matmul_int8(const Signature& signature);
// projection (tensor/projection.h): x [B,T,K] and weights as above, every other operand f32 and contiguous.
std::string_view accepts_projection_float(const Signature& signature);
std::string_view accepts_projection_int8(const Signature& signature);
std::string_view accepts_projection_bf16(const Signature& signature);
// quantize_q8a: x f32 -> q8a, both of contiguous rows at one distance, rows of a multiple of 32.
std::string_view accepts_quantize_q8a(const Signature& signature);
// gather: table [V,D] of a float or block-quantised type, strided rows or Panel16; ids i32, contiguous; f32
// out.
std::string_view accepts_gather(const Signature& signature);

// Row `row` of a gather table as f32: out [D]. `row` is in range.
void decode_table_row(const TensorView& table, std::int64_t row, float* out);

}  // namespace hone::kernels
