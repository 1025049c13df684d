#include <array>
#include <fmt/format.h>

#include "graph/op_rows.h"

namespace hone {
namespace {

using Types = std::vector<Type>;

Result<Types> infer_top_k(const Node& node, std::span<const Type> inputs) {
  const Type& x = inputs[0];
  if (!dtype_row(x.dtype).is_float || dtype_row(x.dtype).is_quantised || x.shape.empty()) {
    return type_error("top_k takes rows of real numbers", "[..,N] of a float type");
  }
  const std::int64_t k = node.attributes.integer("k");
  if (k < 1 || !always_at_least(x.shape.back(), Dim(k))) {
    return type_error("top_k needs the attribute `k` within the last axis",
                      fmt::format("1 to {}", x.shape.back().to_string()));
  }
  Shape shape = x.shape;
  shape.back() = Dim(k);
  return Types{{DType::I32, std::move(shape)}};
}

Result<Types> infer_take_along_axis(const Node& node, std::span<const Type> inputs) {
  const Type& x = inputs[0];
  const Type& indices = inputs[1];
  if (dtype_row(x.dtype).is_quantised)
    return type_error("take_along_axis does not read block-quantised values");
  if (indices.dtype != DType::I32) return type_error("take_along_axis takes indices of type i32", "i32");
  const std::size_t axis = HONE_TRY(normalise_axis(node.attributes.integer("axis"), x.shape.size()));
  if (indices.shape.size() != x.shape.size()) {
    return type_error("take_along_axis takes indices of the rank of x");
  }
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (i != axis && !(indices.shape[i] == x.shape[i])) {
      return type_error("take_along_axis: the other axes must agree", shape_to_string(x.shape));
    }
  }
  return Types{{x.dtype, indices.shape}};
}

Dim take_bytes(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return type_bytes(outputs[0]) + type_bytes(inputs[1]);
}

Result<Types> infer_expert_matmul(const Node&, std::span<const Type> inputs) {
  const Type& x = inputs[0];
  const Type& w = inputs[1];
  const Type& experts = inputs[2];
  if (!dtype_row(x.dtype).is_float || (dtype_row(x.dtype).is_quantised && x.dtype != DType::Q8A)) {
    return type_error("the rows of expert_matmul are real numbers that are not block-quantised, or q8a");
  }
  if (!dtype_row(w.dtype).is_float || w.shape.size() != 3) {
    return type_error("expert_matmul takes one matrix per expert", "real weights [X,N,K]");
  }
  if (experts.dtype != DType::I32 || experts.shape.empty()) {
    return type_error("expert_matmul takes the numbers of the experts as i32 [..,J]", "i32");
  }
  if (x.shape.size() != experts.shape.size() + 1) {
    return type_error("expert_matmul takes x [..,J,K] or [..,1,K] beside experts [..,J]");
  }
  for (std::size_t i = 0; i < experts.shape.size(); ++i) {
    const bool shared = i + 1 == experts.shape.size() && x.shape[i] == Dim(1);
    if (!shared && !(x.shape[i] == experts.shape[i])) {
      return type_error("expert_matmul: the axes of x and of the experts must agree",
                        shape_to_string(experts.shape));
    }
  }
  if (!(x.shape.back() == w.shape[2])) {
    return type_error(
        "the inner dims of expert_matmul differ",
        fmt::format("K = {} on both sides, not {}", x.shape.back().to_string(), w.shape[2].to_string()));
  }
  Shape shape = experts.shape;
  shape.push_back(w.shape[1]);
  return Types{{DType::F32, std::move(shape)}};
}

Dim expert_operations(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return Dim(2) * element_count(outputs[0].shape) * inputs[0].shape.back();
}

// A matrix is read for each row, but no more than all of them: at most min(rows, X).
Dim expert_bytes(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  Type touched = inputs[1];
  const Dim rows = element_count(inputs[2].shape);
  const Dim& all = inputs[1].shape[0];
  touched.shape[0] = rows + all - max(rows, all);
  return type_bytes(inputs[0]) + type_bytes(inputs[2]) + type_bytes(touched);
}

Dim top_k_operations(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  return element_count(inputs[0].shape);
}

constexpr std::array kRoutingRows{
    OpRow{.name = "top_k",
          .op_class = OpClass::Reduction,
          .primitive = true,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_top_k,
          .operations = top_k_operations,
          .summary =
              "i32 indices of the `k` largest along the last axis, largest first; equal ones by index, "
              "NaN as the largest"},
    OpRow{.name = "take_along_axis",
          .op_class = OpClass::Data,
          .primitive = true,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_take_along_axis,
          .operations = no_operations,
          .bytes_read = take_bytes,
          .summary = "x at the i32 indices along `axis`, all other axes alike"},
    OpRow{
        .name = "expert_matmul",
        .op_class = OpClass::Contraction,
        .primitive = true,
        .min_inputs = 3,
        .max_inputs = 3,
        .infer = infer_expert_matmul,
        .operations = expert_operations,
        .bytes_read = expert_bytes,
        .summary = "x [..,J,K] or [..,1,K] by w [X,N,K], experts i32 [..,J]: row j is w[experts[j]] x; f32"},
};

}  // namespace

std::span<const OpRow> routing_rows() {
  return kRoutingRows;
}

}  // namespace hone
