#include "kernels/vector_signatures.h"

#include "kernels/signature_helpers.h"

namespace hone::kernels {
namespace {

constexpr std::string_view kArity = "needs the op's number of inputs and outputs";
constexpr std::string_view kStrided = "needs strided operands";
constexpr std::string_view kSequence = "needs the sequence of each row as i32 [1,N]";

bool has_arity(const Signature& signature, std::size_t inputs) {
  return signature.inputs.size() == inputs && signature.outputs.size() == 1;
}

bool all_strided(const Signature& signature) {
  for (const OperandSpec& operand : signature.inputs) {
    if (!is_strided(operand)) return false;
  }
  for (const OperandSpec& operand : signature.outputs) {
    if (!is_strided(operand)) return false;
  }
  return true;
}

bool has_elements_of_bytes(DType dtype) {
  return element_bytes(dtype) != 0;
}

bool is_strip_type(DType dtype) {
  return element_bytes(dtype) != 0 && dtype != DType::F8E4M3 && dtype != DType::F8E5M2;
}

bool is_sequence(const OperandSpec& operand) {
  return operand.dtype == DType::I32 && rank_of(operand) == 2;
}

bool is_f32_row(const OperandSpec& operand) {
  return operand.dtype == DType::F32 && rank_of(operand) >= 1 && is_contiguous_along_last_axis(operand);
}
bool is_bf16_row(const OperandSpec& operand) {
  return operand.dtype == DType::BF16 && rank_of(operand) >= 1 && is_contiguous_along_last_axis(operand);
}
bool is_q8a_row(const OperandSpec& operand) {
  if (operand.dtype != DType::Q8A || rank_of(operand) < 1 || !is_contiguous_along_last_axis(operand))
    return false;
  const auto length = operand.shape.back().as_constant();
  return length.has_value() && *length % 32 == 0;
}

}  // namespace

namespace {

bool is_q8_0_row(const OperandSpec& operand) {
  if (operand.dtype != DType::Q8_0 || rank_of(operand) < 3 || !is_contiguous_along_last_axis(operand))
    return false;
  const auto length = operand.shape.back().as_constant();
  return length.has_value() && *length % 32 == 0;
}
bool is_cache(const OperandSpec& operand) {
  return is_half_or_float(operand.dtype) || is_q8_0_row(operand);
}

// Norms: x f32 rows, one f32 vector for each further input; q8a [..,D], or [..,2,D] in two terms; rms_norm
// writes bf16 as well.
std::string_view accepts_norm(const Signature& signature, std::size_t inputs) {
  if (!has_arity(signature, inputs)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& out = signature.outputs[0];
  const bool writes_bf16 = inputs == 2 && is_bf16_row(out);
  if (!is_f32_row(signature.inputs[0]) || (!is_f32_row(out) && !is_q8a_row(out) && !writes_bf16))
    return "needs f32 rows, contiguous, and an output of f32 or of q8a in whole blocks";
  const std::size_t rank = signature.inputs[0].shape.size();
  const bool two_terms =
      out.dtype == DType::Q8A && out.shape.size() == rank + 1 && out.shape[rank - 1].as_constant() == 2;
  if (out.shape.size() != rank && !two_terms) return "needs an output [..,D], or q8a [..,2,D] in two terms";
  for (const OperandSpec& vector : signature.inputs.subspan(1)) {
    if (!is_f32_row(vector)) return "needs f32 weights, contiguous";
  }
  return {};
}

}  // namespace

std::string_view accepts_rms_norm(const Signature& signature) {
  return accepts_norm(signature, 2);
}
std::string_view accepts_layer_norm(const Signature& signature) {
  return accepts_norm(signature, 3);
}

std::string_view accepts_norm_add(const Signature& signature) {
  const std::size_t inputs = signature.inputs.size();
  if ((inputs != 3 && inputs != 4) || signature.outputs.size() != inputs - 2) return kArity;
  if (!all_strided(signature)) return kStrided;
  for (const OperandSpec& operand : signature.inputs) {
    if (!is_f32_row(operand)) return "needs f32 rows, residual and weights, contiguous";
  }
  if (!is_f32_row(signature.outputs[0])) return "needs a sum of f32, contiguous";
  if (inputs == 4 && !is_f32_row(signature.outputs[1]) && !is_bf16_row(signature.outputs[1]) &&
      !is_q8a_row(signature.outputs[1]))
    return "needs a norm of the sum of f32, bf16, or of q8a in whole blocks";
  return {};
}

std::string_view accepts_softmax(const Signature& signature) {
  if (!has_arity(signature, 1)) return kArity;
  if (!all_strided(signature)) return kStrided;
  if (!is_f32_row(signature.inputs[0]) || !is_f32_row(signature.outputs[0]))
    return "needs f32 rows, contiguous";
  return {};
}

std::string_view accepts_reduce(const Signature& signature) {
  if (!has_arity(signature, 1)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& x = signature.inputs[0];
  if (!is_f32_row(x) || signature.outputs[0].dtype != DType::F32) return "needs f32 rows, contiguous";
  const std::int64_t axis = attribute_integer(signature.attributes, "axis", 0);
  if (axis != -1 && axis != rank_of(x) - 1) return "needs a reduction over the last axis";
  return {};
}

std::string_view accepts_rope(const Signature& signature) {
  if (!has_arity(signature, 3)) return kArity;
  if (!all_strided(signature)) return kStrided;
  for (int i = 0; i < 3; ++i) {
    const OperandSpec& operand = signature.inputs[static_cast<std::size_t>(i)];
    if (!is_f32_row(operand)) return "needs f32 operands, contiguous along the last axis";
    if (rank_of(operand) < 3 || (i > 0 && rank_of(operand) != 3))
      return "needs x [B,T,..,E] and tables [B,T,R/2]";
  }
  if (!is_f32_row(signature.outputs[0])) return "needs f32 operands, contiguous along the last axis";
  return {};
}

std::string_view accepts_state_append(const Signature& signature) {
  if (!has_arity(signature, 3) && !has_arity(signature, 4)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& state = signature.inputs[0];
  const OperandSpec& added = signature.inputs[1];
  const OperandSpec& positions = signature.inputs[2];
  if (state.dtype == DType::Q8_0) {
    if (!is_f32_row(added) || !is_q8_0_row(state)) return "needs f32 rows of whole blocks, contiguous";
  } else if (!has_elements_of_bytes(state.dtype) || state.dtype != added.dtype) {
    return "needs state and new values of one type that is not block-quantised, or f32 and a state of q8_0";
  }
  if (state.dtype != signature.outputs[0].dtype) return "needs an output of the state's type";
  if (rank_of(state) < 2 || rank_of(state) != rank_of(added)) return "needs state [B,C,..] and new [B,T,..]";
  if (positions.dtype != DType::I32 || rank_of(positions) != 2) return "needs i32 positions [B,T]";
  if (signature.inputs.size() == 4 && !is_sequence(signature.inputs[3])) return kSequence;
  return {};
}

std::string_view accepts_copy(const Signature& signature) {
  if (!has_arity(signature, 1)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& x = signature.inputs[0];
  if (!has_elements_of_bytes(x.dtype)) return "needs a type that is not block-quantised";
  if (x.dtype != signature.outputs[0].dtype) return "needs an output of the input's type";
  if (rank_of(x) > rank_of(signature.outputs[0])) return "needs an input that broadcasts to the output";
  return {};
}

std::string_view accepts_concat(const Signature& signature) {
  if (signature.inputs.empty() || signature.outputs.size() != 1) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& out = signature.outputs[0];
  if (!has_elements_of_bytes(out.dtype)) return "needs a type that is not block-quantised";
  for (const OperandSpec& operand : signature.inputs) {
    if (operand.dtype != out.dtype || rank_of(operand) != rank_of(out))
      return "needs operands of one type and rank";
  }
  return {};
}

std::string_view accepts_strips(const Signature& signature) {
  if (signature.outputs.empty()) return kArity;
  if (!all_strided(signature)) return kStrided;
  const int rank = rank_of(signature.outputs[0]);
  for (const OperandSpec& operand : signature.inputs) {
    if (!is_strip_type(operand.dtype)) return "needs operands that are neither block-quantised nor f8";
    if (rank_of(operand) > rank) return "needs inputs that broadcast to the output";
  }
  for (const OperandSpec& operand : signature.outputs) {
    if (!is_strip_type(operand.dtype)) return "needs operands that are neither block-quantised nor f8";
    if (rank_of(operand) != rank) return "needs outputs of one shape";
  }
  return {};
}

std::string_view accepts_matmul_strided(const Signature& signature) {
  if (!has_arity(signature, 2)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& a = signature.inputs[0];
  const OperandSpec& b = signature.inputs[1];
  if (a.dtype != DType::F32 || !is_half_or_float(b.dtype)) return "needs f32 x f32, f16 or bf16";
  if (rank_of(a) < 2 || rank_of(b) < 2) return "needs matrices";
  if (!is_f32_row(signature.outputs[0])) return "needs f32 output rows, contiguous";
  return {};
}

std::string_view accepts_attention(const Signature& signature) {
  if (signature.inputs.size() < 3 || signature.inputs.size() > 5 || signature.outputs.size() != 1)
    return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& q = signature.inputs[0];
  const OperandSpec& k = signature.inputs[1];
  const OperandSpec& v = signature.inputs[2];
  if (q.dtype != DType::F32 || rank_of(q) != 5) return "needs f32 queries [B,K,G,T,E]";
  if (!is_cache(k) || !is_cache(v)) return "needs keys and values of f32, f16, bf16, or q8_0 in whole blocks";
  if (rank_of(k) != 4 || rank_of(v) != 4) return "needs keys [B,C,K,E] and values [B,C,K,V]";
  if (!is_contiguous_along_last_axis(k) || !is_contiguous_along_last_axis(v)) {
    return "needs keys and values contiguous along the last axis";
  }
  if (signature.inputs.size() >= 4 &&
      (signature.inputs[3].dtype != DType::I32 || rank_of(signature.inputs[3]) != 2))
    return "needs i32 positions [B,T]";
  if (signature.inputs.size() == 5 && !is_sequence(signature.inputs[4])) return kSequence;
  // Scratch is sized by G, E and V, which the planner must know.
  if (!is_constant_axis(q, 2) || !is_constant_axis(q, 4) || !is_constant_axis(v, 3))
    return "needs a constant number of heads and head size";
  const OperandSpec& out = signature.outputs[0];
  if (!is_f32_row(out) && !is_bf16_row(out) && !is_q8a_row(out))
    return "needs an output of f32, bf16, or q8a in whole blocks, contiguous along the last axis";
  return {};
}

std::string_view accepts_top_k(const Signature& signature) {
  if (!has_arity(signature, 1)) return kArity;
  if (!all_strided(signature)) return kStrided;
  if (!is_f32_row(signature.inputs[0])) return "needs f32 rows, contiguous";
  const OperandSpec& out = signature.outputs[0];
  if (out.dtype != DType::I32 || !is_contiguous_along_last_axis(out))
    return "needs an i32 output, contiguous along the last axis";
  return {};
}

std::string_view accepts_take_along_axis(const Signature& signature) {
  if (!has_arity(signature, 2)) return kArity;
  if (!all_strided(signature)) return kStrided;
  const OperandSpec& x = signature.inputs[0];
  const std::int64_t axis = attribute_integer(signature.attributes, "axis", 0);
  if (axis != -1 && axis != rank_of(x) - 1) return "needs indices along the last axis";
  if (!has_elements_of_bytes(x.dtype) || x.dtype != signature.outputs[0].dtype)
    return "needs one type that is not block-quantised";
  if (signature.inputs[1].dtype != DType::I32) return "needs i32 indices";
  return {};
}

}  // namespace hone::kernels
