#include "kernels/signature_helpers.h"

#include <optional>

namespace hone::kernels {
namespace {

const Dim* axis_of(const OperandSpec& operand, int axis) {
  const int rank = rank_of(operand);
  const int index = axis < 0 ? axis + rank : axis;
  return index < 0 || index >= rank ? nullptr : &operand.shape[static_cast<std::size_t>(index)];
}

bool is_eight_bytes(DType dtype) {
  return dtype == DType::F64 || dtype == DType::I64 || dtype == DType::U64 || dtype == DType::U32;
}

}  // namespace

std::int64_t attribute_integer(const Attributes* attributes, const char* name, std::int64_t otherwise) {
  return attributes == nullptr ? otherwise : attributes->integer(name, otherwise);
}

double attribute_real(const Attributes* attributes, const char* name, double otherwise) {
  return attributes == nullptr ? otherwise : attributes->real(name, otherwise);
}

const std::int64_t* attribute_integers(const Attributes* attributes, const char* name, std::int64_t* count) {
  const auto* values = attributes == nullptr ? nullptr : attributes->get<std::vector<std::int64_t>>(name);
  *count = values == nullptr ? 0 : static_cast<std::int64_t>(values->size());
  return values == nullptr ? nullptr : values->data();
}

StripCode strip_code(const StripProgram* program) {
  if (program == nullptr) return {};
  StripCode code{program->instructions.data(), static_cast<int>(program->instructions.size()),
                 program->register_count, false};
  for (const StripInstruction& instruction : program->instructions) {
    if (is_eight_bytes(instruction.dtype)) code.wide = true;
  }
  return code;
}

int rank_of(const OperandSpec& operand) {
  return static_cast<int>(operand.shape.size());
}

bool is_strided(const OperandSpec& operand) {
  return operand.layout == Layout::Strided;
}

bool is_contiguous_along_last_axis(const OperandSpec& operand) {
  if (operand.strides.empty() || operand.shape.empty()) return true;
  return operand.strides.back().as_constant() == 1 || operand.shape.back().as_constant() == 1;
}

bool is_constant_axis(const OperandSpec& operand, int axis) {
  const Dim* dim = axis_of(operand, axis);
  return dim != nullptr && dim->is_constant();
}

bool is_half_or_float(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
}

std::int64_t element_bytes(DType dtype) {
  const DTypeRow& row = dtype_row(dtype);
  return row.block_elements == 1 ? row.block_bytes : 0;
}

}  // namespace hone::kernels
