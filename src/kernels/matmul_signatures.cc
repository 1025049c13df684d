#include "kernels/matmul_signatures.h"

#include "kernels/signature_helpers.h"
#include "tensor/block_formats.h"
#include "tensor/panel_layout.h"

namespace hone::kernels {
namespace {

// Types that decode_row reads: every float type of a file.
bool is_weight_type(DType dtype) {
  return dtype_row(dtype).is_float && dtype != DType::Q8A;
}

// True if all axes but the last are one axis of rows: the stride of each is that of the next times its size.
bool rows_are_one_axis(const OperandSpec& operand) {
  if (!is_strided(operand) || !is_contiguous_along_last_axis(operand)) return false;
  if (operand.strides.empty()) return true;
  for (int axis = rank_of(operand) - 3; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (operand.shape[a].as_constant() == 1) continue;
    if (!(operand.strides[a] == operand.strides[a + 1] * operand.shape[a + 1])) return false;
  }
  return true;
}

bool is_contiguous(const OperandSpec& operand) {
  if (!rows_are_one_axis(operand)) return false;
  const auto rank = operand.shape.size();
  if (operand.strides.empty() || rank < 2) return true;
  return operand.strides[rank - 2] == operand.shape[rank - 1] * operand.strides[rank - 1];
}

// True if every row along the last axis is the same one.
bool repeats_one_row(const OperandSpec& operand) {
  const auto rank = operand.shape.size();
  return rank >= 2 && !operand.strides.empty() && rows_are_one_axis(operand) &&
         operand.strides[rank - 2] == Dim(0);
}

std::string_view check_rows(const OperandSpec& x, const OperandSpec& out, DType x_dtype) {
  if (x.dtype != x_dtype) {
    return x_dtype == DType::F32 ? "needs x of f32" : "needs x of q8a";
  }
  if (rank_of(x) < 1 || !rows_are_one_axis(x)) return "needs contiguous rows of x at one distance";
  if (out.dtype != DType::F32) return "needs an output of f32";
  if (!rows_are_one_axis(out)) return "needs contiguous rows of the output at one distance";
  return {};
}

std::string_view check_weight(const OperandSpec& w, bool int8, int rank = 2) {
  if (w.layout != Layout::Panel16) return "needs weights in panels of 16 columns";
  if (rank_of(w) != rank) return rank == 2 ? "needs a weight matrix of rank 2" : "needs weights [X,N,K]";
  if (int8 && !panel_has_dot_lanes(w.dtype)) return "needs weights of q4_0, q4_1 or q8_0";
  if (!is_weight_type(w.dtype)) return "needs weights of a float or block-quantised type";
  return {};
}

std::string_view accepts_matmul(const Signature& signature, bool int8) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return "needs two inputs and one output";
  if (attribute_integer(signature.attributes, "transpose_b", 0) != 1) return "needs transpose_b=1";
  const std::string_view rows =
      check_rows(signature.inputs[0], signature.outputs[0], int8 ? DType::Q8A : DType::F32);
  return rows.empty() ? check_weight(signature.inputs[1], int8) : rows;
}

std::string_view accepts_swiglu(const Signature& signature, bool int8) {
  if (signature.inputs.size() != 3 || signature.outputs.size() != 1)
    return "needs three inputs and one output";
  const std::string_view rows =
      check_rows(signature.inputs[0], signature.outputs[0], int8 ? DType::Q8A : DType::F32);
  if (!rows.empty()) return rows;
  if (signature.inputs[1].dtype != signature.inputs[2].dtype) return "needs both weights of one type";
  const std::string_view gate = check_weight(signature.inputs[1], int8);
  return gate.empty() ? check_weight(signature.inputs[2], int8) : gate;
}

std::string_view accepts_expert_matmul(const Signature& signature, bool int8) {
  if (signature.inputs.size() != 3 || signature.outputs.size() != 1)
    return "needs three inputs and one output";
  const OperandSpec& x = signature.inputs[0];
  if (x.dtype != (int8 ? DType::Q8A : DType::F32)) return int8 ? "needs x of q8a" : "needs x of f32";
  if (!is_strided(x) || !is_contiguous_along_last_axis(x)) return "needs contiguous rows of x";
  const OperandSpec& out = signature.outputs[0];
  if (out.dtype != DType::F32 || !rows_are_one_axis(out))
    return "needs an f32 output of contiguous rows at one distance";
  const OperandSpec& experts = signature.inputs[2];
  if (experts.dtype != DType::I32 || (!is_contiguous(experts) && !repeats_one_row(experts)))
    return "needs experts of i32, contiguous or the same for all rows";
  // Scratch holds rows of x: the planner must know their length.
  if (!is_constant_axis(signature.inputs[0], -1)) return "needs a constant row length";
  return check_weight(signature.inputs[1], int8, 3);
}

}  // namespace

std::string_view accepts_expert_matmul_float(const Signature& signature) {
  return accepts_expert_matmul(signature, false);
}
std::string_view accepts_expert_matmul_int8(const Signature& signature) {
  return accepts_expert_matmul(signature, true);
}
std::string_view accepts_matmul_float(const Signature& signature) {
  return accepts_matmul(signature, false);
}
std::string_view accepts_matmul_int8(const Signature& signature) {
  return accepts_matmul(signature, true);
}
std::string_view accepts_swiglu_float(const Signature& signature) {
  return accepts_swiglu(signature, false);
}
std::string_view accepts_swiglu_int8(const Signature& signature) {
  return accepts_swiglu(signature, true);
}

std::string_view accepts_quantize_q8a(const Signature& signature) {
  if (signature.inputs.size() != 1 || signature.outputs.size() != 1) return "needs one input and one output";
  const OperandSpec& x = signature.inputs[0];
  const OperandSpec& out = signature.outputs[0];
  if (x.dtype != DType::F32 || out.dtype != DType::Q8A) return "needs f32 in and q8a out";
  if (rank_of(x) < 1 || !rows_are_one_axis(x) || !rows_are_one_axis(out)) {
    return "needs contiguous rows at one distance";
  }
  const auto length = x.shape.back().as_constant();
  return length.has_value() && *length % 32 == 0 ? std::string_view{}
                                                 : "needs a row length that is a multiple of 32";
}

std::string_view accepts_gather(const Signature& signature) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return "needs two inputs and one output";
  const OperandSpec& table = signature.inputs[0];
  const OperandSpec& ids = signature.inputs[1];
  const OperandSpec& out = signature.outputs[0];
  if (rank_of(table) != 2) return "needs a table of rank 2";
  if (table.layout == Layout::Panel16) {
    if (!check_weight(table, false).empty()) return "needs a table of a float or block-quantised type";
  } else {
    if (!is_weight_type(table.dtype)) return "needs a table of a float or block-quantised type";
    if (!is_contiguous_along_last_axis(table)) return "needs contiguous table rows";
  }
  if (ids.dtype != DType::I32 || !is_contiguous(ids)) return "needs contiguous ids of i32";
  if (out.dtype != DType::F32 || !is_contiguous(out)) return "needs a contiguous output of f32";
  return {};
}

void decode_table_row(const TensorView& table, std::int64_t row, float* out) {
  const std::int64_t length = table.shape[1];
  if (table.layout == Layout::Panel16) {
    unpack_column(table.dtype, table.data, row, length, out);
    return;
  }
  const auto* source =
      static_cast<const std::byte*>(table.data) + dtype_bytes(table.dtype, row * table.strides[0]);
  // The one error of decode_row is a type without a decoder, which accepts_gather() has excluded.
  static_cast<void>(decode_row(table.dtype, source, length, out));
}

}  // namespace hone::kernels
