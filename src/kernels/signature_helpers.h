// What kernel sources need from types with inline members. Sources under fast/ are compiled once per ISA
// level and must not instantiate std:: templates or inline members (the linker may keep an AVX-512 copy for
// everyone), so they call these functions, each compiled once.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"
#include "kernels/strip_program.h"

namespace hone::kernels {

// The attribute of that name, or `otherwise` if it is absent or of another type.
std::int64_t attribute_integer(const Attributes* attributes, const char* name, std::int64_t otherwise);
double attribute_real(const Attributes* attributes, const char* name, double otherwise);
// The attribute's integers, `count` of them; nullptr and 0 if it is absent or of another type.
const std::int64_t* attribute_integers(const Attributes* attributes, const char* name, std::int64_t* count);

// A strip program as plain pointers; `wide` if a register holds 8-byte elements.
struct StripCode {
  const StripInstruction* instructions = nullptr;
  int count = 0;
  int register_count = 0;
  bool wide = false;
};
StripCode strip_code(const StripProgram* program);

// Signature questions. An axis counts from the front, or from the back if negative.
int rank_of(const OperandSpec& operand);
bool is_strided(const OperandSpec& operand);  // Layout::Strided
bool is_contiguous_along_last_axis(
    const OperandSpec& operand);  // its stride is the constant 1, or the axis has one element
bool is_constant_axis(const OperandSpec& operand, int axis);
bool is_half_or_float(DType dtype);       // f32, f16, bf16
std::int64_t element_bytes(DType dtype);  // 0 for block-quantised types

}  // namespace hone::kernels
