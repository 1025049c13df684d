#include "kernels/matmul_signatures.h"

#include <cstring>

#include "kernels/signature_helpers.h"
#include "tensor/block_formats.h"
#include "tensor/panel_layout.h"
#include "tensor/projection.h"

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

std::string_view other_x(DType x_dtype) {
  if (x_dtype == DType::BF16) return "needs x of bf16";
  return x_dtype == DType::F32 ? "needs x of f32" : "needs x of q8a";
}

std::string_view check_rows(const OperandSpec& x, const OperandSpec& out, DType x_dtype) {
  if (x.dtype != x_dtype) return other_x(x_dtype);
  if (rank_of(x) < 1 || !rows_are_one_axis(x)) return "needs contiguous rows of x at one distance";
  if (out.dtype != DType::F32) return "needs an output of f32";
  if (!rows_are_one_axis(out)) return "needs contiguous rows of the output at one distance";
  return {};
}

// Weights [N,K] in file order that may be laid out as panels (fast/file_rows.h).
bool is_file_rows(const OperandSpec& w) {
  if (!w.is_weight || !is_strided(w) || rank_of(w) != 2 || !is_contiguous(w)) return false;
  const auto k = w.shape[1].as_constant();
  return k.has_value() && w.shape[0].is_constant() && panel_supports(w.dtype, *k);
}

// Weights that a kernel whose x is of type `x` multiplies.
std::string_view check_weight(const OperandSpec& w, DType x, int rank = 2) {
  if (w.layout != Layout::Panel16 && (rank != 2 || !is_file_rows(w)))
    return "needs weights in panels of 16 columns, or rows [N,K] of the file";
  if (rank_of(w) != rank) return rank == 2 ? "needs a weight matrix of rank 2" : "needs weights [X,N,K]";
  if (x == DType::Q8A && !panel_has_dot_numbers(w.dtype))
    return "needs weights of q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k or q6_k";
  if (x == DType::BF16) {
    const auto k = w.shape.back().as_constant();
    if (w.dtype != DType::BF16 || !k || *k % 32 != 0)
      return "needs weights of bf16, and a row length that is a multiple of 32";
  }
  if (!is_weight_type(w.dtype)) return "needs weights of a float or block-quantised type";
  return {};
}

std::string_view accepts_matmul(const Signature& signature, DType x) {
  if (signature.inputs.size() != 2 || signature.outputs.size() != 1) return "needs two inputs and one output";
  if (attribute_integer(signature.attributes, "transpose_b", 0) != 1) return "needs transpose_b=1";
  const std::string_view rows = check_rows(signature.inputs[0], signature.outputs[0], x);
  return rows.empty() ? check_weight(signature.inputs[1], x) : rows;
}

std::string_view accepts_swiglu(const Signature& signature, DType x) {
  if (signature.inputs.size() != 3 || signature.outputs.size() != 1)
    return "needs three inputs and one output";
  const std::string_view rows = check_rows(signature.inputs[0], signature.outputs[0], x);
  if (!rows.empty()) return rows;
  if (signature.inputs[1].dtype != signature.inputs[2].dtype) return "needs both weights of one type";
  const std::string_view gate = check_weight(signature.inputs[1], x);
  return gate.empty() ? check_weight(signature.inputs[2], x) : gate;
}

std::string_view accepts_expert_matmul(const Signature& signature, DType x_type) {
  if (signature.inputs.size() != 3 || signature.outputs.size() != 1)
    return "needs three inputs and one output";
  const OperandSpec& x = signature.inputs[0];
  if (x.dtype != x_type) return other_x(x_type);
  if (!is_strided(x) || !is_contiguous_along_last_axis(x)) return "needs contiguous rows of x";
  const OperandSpec& out = signature.outputs[0];
  if (out.dtype != DType::F32 || !rows_are_one_axis(out))
    return "needs an f32 output of contiguous rows at one distance";
  const OperandSpec& experts = signature.inputs[2];
  if (experts.dtype != DType::I32 || (!is_contiguous(experts) && !repeats_one_row(experts)))
    return "needs experts of i32, contiguous or the same for all rows";
  // Scratch holds rows of x: the planner must know their length.
  if (!is_constant_axis(signature.inputs[0], -1)) return "needs a constant row length";
  return check_weight(signature.inputs[1], x_type, 3);
}

// Operand number `index`, or nullptr if it is absent or out of range.
const OperandSpec* operand_at(std::span<const OperandSpec> operands, std::int64_t index) {
  return index < 0 || index >= static_cast<std::int64_t>(operands.size())
             ? nullptr
             : &operands[static_cast<std::size_t>(index)];
}

bool is_f32_vector(const OperandSpec* operand) {
  return operand != nullptr && operand->dtype == DType::F32 && is_strided(*operand) &&
         rank_of(*operand) == 1 && is_contiguous_along_last_axis(*operand);
}

bool is_turns(const OperandSpec* operand) {
  return operand != nullptr && operand->dtype == DType::F32 && is_strided(*operand) &&
         rank_of(*operand) == 3 && is_contiguous_along_last_axis(*operand);
}

// The state that a section appends to: rows of N elements behind one another.
std::string_view check_appended(const Signature& signature, const ProjectionSection& section) {
  const OperandSpec* state = operand_at(signature.outputs, section.output);
  const OperandSpec* positions = operand_at(signature.inputs, section.positions);
  if (state == nullptr || !is_strided(*state) || rank_of(*state) < 3 || !is_half_or_float(state->dtype))
    return "needs a state [B,C,..] of f32, f16 or bf16";
  for (std::size_t axis = 2; axis + 1 < state->shape.size(); ++axis) {
    if (!(state->strides[axis] == state->strides[axis + 1] * state->shape[axis + 1]))
      return "needs the rows of the state contiguous";
  }
  if (!is_contiguous_along_last_axis(*state)) return "needs the rows of the state contiguous";
  if (positions == nullptr || positions->dtype != DType::I32 || rank_of(*positions) != 2)
    return "needs i32 positions [B,T]";
  return {};
}

bool is_whole_blocks(const OperandSpec& weight) {
  const auto n = weight.shape[0].as_constant();
  return n.has_value() && *n % kSquaresBlock == 0;
}

// q8a is [..,N], or [..,2,N] in two terms.
bool has_whole_terms(const Signature& signature, const OperandSpec& out) {
  const auto terms = static_cast<std::size_t>(attribute_integer(signature.attributes, "terms", 1));
  const std::size_t rank = signature.inputs[0].shape.size() - (terms - 1);
  return out.dtype != DType::Q8A || out.shape.size() == rank ||
         (out.shape.size() == rank + 1 && out.shape[rank - 1].as_constant() == 2);
}

std::string_view check_output(const Signature& signature, const ProjectionSection& section) {
  const OperandSpec& weight = signature.inputs[static_cast<std::size_t>(section.weight)];
  const OperandSpec* out = operand_at(signature.outputs, section.output);
  if (out == nullptr || !is_contiguous(*out)) return "needs contiguous outputs";
  if (!is_half_or_float(out->dtype) && (out->dtype != DType::Q8A || !is_whole_blocks(weight)))
    return "needs outputs of f32, f16, bf16, or q8a in whole blocks";
  if (!has_whole_terms(signature, *out)) return "needs q8a outputs [..,N], or [..,2,N] in two terms";
  if (section.next_norm < 0 && out->dtype != DType::Q8A) return {};
  // A tile of a turned section is a head.
  if (section.cosine >= 0 && section.head % kSquaresBlock != 0)
    return "needs heads of whole blocks where they are rounded or squared";
  if (section.next_norm < 0) return {};
  const OperandSpec* scaled = operand_at(signature.outputs, section.output + 1);
  const OperandSpec* sums = operand_at(signature.outputs, section.output + 2);
  if (!is_f32_vector(operand_at(signature.inputs, section.next_norm)))
    return "needs f32 norm weights, contiguous";
  if (out->dtype != DType::F32 || scaled == nullptr || sums == nullptr || sums->dtype != DType::F32 ||
      !is_contiguous(*scaled) || !is_contiguous(*sums) || !is_whole_blocks(weight) ||
      !has_whole_terms(signature, *scaled))
    return "needs f32 output and sums, contiguous, in whole blocks of 32 columns";
  return {};
}

std::string_view check_section(const Signature& signature, const ProjectionSection& section, DType x) {
  for (const std::int64_t input : {section.weight, section.gate}) {
    if (input < 0 && input == section.gate) continue;
    const OperandSpec* weight = operand_at(signature.inputs, input);
    if (weight == nullptr) return "needs a weight for each section";
    const std::string_view refusal = check_weight(*weight, x);
    if (!refusal.empty()) return refusal;
  }
  if (section.bias >= 0 && !is_f32_vector(operand_at(signature.inputs, section.bias)))
    return "needs an f32 bias [N], contiguous";
  if (section.head_norm >= 0 &&
      (section.cosine < 0 || !is_f32_vector(operand_at(signature.inputs, section.head_norm))))
    return "needs f32 norm weights of heads, contiguous, and a rope";
  if (section.cosine >= 0) {
    if (!is_turns(operand_at(signature.inputs, section.cosine)) ||
        !is_turns(operand_at(signature.inputs, section.sine)))
      return "needs f32 cosines and sines [B,T,R/2]";
    if (section.head % 16 != 0 || section.head > kLargestHead)
      return "needs heads of whole panels, at most 256 columns";
  }
  if (section.residual >= 0) {
    const OperandSpec* residual = operand_at(signature.inputs, section.residual);
    if (residual == nullptr || residual->dtype != DType::F32 || rank_of(*residual) < 2 ||
        !rows_are_one_axis(*residual))
      return "needs residual rows of f32 at one distance";
  }
  return section.state >= 0 ? check_appended(signature, section) : check_output(signature, section);
}

std::string_view accepts_projection(const Signature& signature, DType x_type) {
  const OperandSpec& x = signature.inputs[0];
  if (x.dtype != x_type) return other_x(x_type);
  if (rank_of(x) < 2 || !rows_are_one_axis(x)) return "needs x [..,K] with contiguous rows at one distance";
  const std::int64_t terms = attribute_integer(signature.attributes, "terms", 1);
  if (terms != 1 && (terms != 2 || x_type != DType::Q8A)) return "needs one term, or two of q8a";
  std::int64_t count = 0;
  const std::int64_t* fields = attribute_integers(signature.attributes, "sections", &count);
  if (count == 0 || count % kProjectionFields != 0) return "needs the attribute `sections`";
  for (std::int64_t i = 0; i < count; i += kProjectionFields) {
    ProjectionSection section;
    std::memcpy(static_cast<void*>(&section), fields + i, sizeof(section));
    const std::string_view refusal = check_section(signature, section, x_type);
    if (!refusal.empty()) return refusal;
  }
  const std::int64_t sums = attribute_integer(signature.attributes, "row_sums", -1);
  if (sums < 0) return {};
  const OperandSpec* operand = operand_at(signature.inputs, sums);
  return operand != nullptr && operand->dtype == DType::F32 && is_contiguous(*operand)
             ? std::string_view{}
             : "needs contiguous f32 sums of squares";
}

}  // namespace

std::string_view accepts_projection_float(const Signature& signature) {
  return accepts_projection(signature, DType::F32);
}
std::string_view accepts_projection_int8(const Signature& signature) {
  return accepts_projection(signature, DType::Q8A);
}
std::string_view accepts_projection_bf16(const Signature& signature) {
  return accepts_projection(signature, DType::BF16);
}
std::string_view accepts_expert_matmul_float(const Signature& signature) {
  return accepts_expert_matmul(signature, DType::F32);
}
std::string_view accepts_expert_matmul_int8(const Signature& signature) {
  return accepts_expert_matmul(signature, DType::Q8A);
}
std::string_view accepts_matmul_float(const Signature& signature) {
  return accepts_matmul(signature, DType::F32);
}
std::string_view accepts_matmul_int8(const Signature& signature) {
  return accepts_matmul(signature, DType::Q8A);
}
std::string_view accepts_matmul_bf16(const Signature& signature) {
  return accepts_matmul(signature, DType::BF16);
}
std::string_view accepts_swiglu_float(const Signature& signature) {
  return accepts_swiglu(signature, DType::F32);
}
std::string_view accepts_swiglu_int8(const Signature& signature) {
  return accepts_swiglu(signature, DType::Q8A);
}
std::string_view accepts_swiglu_bf16(const Signature& signature) {
  return accepts_swiglu(signature, DType::BF16);
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
    if (!check_weight(table, DType::F32).empty()) return "needs a table of a float or block-quantised type";
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
