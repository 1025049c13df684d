#include <array>
#include <fmt/format.h>

#include "graph/op_rows.h"

namespace hone {

Error type_error(std::string message, std::string expected) {
  return Error{ErrorCode::BadModel, Fault::Hone, {}, std::move(message), std::move(expected), {}, {}};
}

Result<Shape> broadcast_shapes(std::span<const Type> inputs) {
  std::size_t rank = 0;
  for (const Type& type : inputs) rank = std::max(rank, type.shape.size());
  Shape out(rank, Dim(1));
  for (const Type& type : inputs) {
    const std::size_t shift = rank - type.shape.size();
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
      Dim& have = out[shift + i];
      if (type.shape[i] == have || type.shape[i] == Dim(1)) continue;
      if (!(have == Dim(1))) {
        return type_error("shapes do not broadcast", fmt::format("axis {} of {} to be {} or 1", i,
                                                                 type_to_string(type), have.to_string()));
      }
      have = type.shape[i];
    }
  }
  return out;
}

namespace {

Status one_dtype(std::span<const Type> inputs) {
  for (const Type& type : inputs) {
    if (dtype_row(type.dtype).is_quantised)
      return type_error("elementwise ops do not read block-quantised values");
    if (type.dtype != inputs[0].dtype)
      return type_error("operands have different element types", "one element type");
  }
  return {};
}

Status all_bool(std::span<const Type> inputs) {
  for (const Type& type : inputs) {
    if (type.dtype != DType::Bool) return type_error("logical ops take bool operands", "bool");
  }
  return {};
}

Result<std::vector<Type>> infer_same(const Node&, std::span<const Type> inputs) {
  HONE_TRY(one_dtype(inputs));
  return std::vector<Type>{{inputs[0].dtype, HONE_TRY(broadcast_shapes(inputs))}};
}

// exp, log, ...: only on real numbers.
Result<std::vector<Type>> infer_real(const Node& node, std::span<const Type> inputs) {
  if (!dtype_row(inputs[0].dtype).is_float)
    return type_error("this op takes floating-point operands", "a float type");
  return infer_same(node, inputs);
}

Result<std::vector<Type>> infer_compare(const Node&, std::span<const Type> inputs) {
  HONE_TRY(one_dtype(inputs));
  return std::vector<Type>{{DType::Bool, HONE_TRY(broadcast_shapes(inputs))}};
}

Result<std::vector<Type>> infer_logical(const Node&, std::span<const Type> inputs) {
  HONE_TRY(all_bool(inputs));
  return std::vector<Type>{{DType::Bool, HONE_TRY(broadcast_shapes(inputs))}};
}

Result<std::vector<Type>> infer_select(const Node&, std::span<const Type> inputs) {
  if (inputs[0].dtype != DType::Bool) return type_error("select's first operand is a condition", "bool");
  HONE_TRY(one_dtype(inputs.subspan(1)));
  return std::vector<Type>{{inputs[1].dtype, HONE_TRY(broadcast_shapes(inputs))}};
}

Result<std::vector<Type>> infer_cast(const Node& node, std::span<const Type> inputs) {
  const auto* to = node.attributes.get<std::string>("to");
  const std::optional<DType> dtype = to == nullptr ? std::nullopt : dtype_from_name(*to);
  if (!dtype || dtype_row(*dtype).is_quantised) {
    return type_error("cast needs the attribute `to`",
                      "the name of an element type that is not block-quantised");
  }
  // q8a is what a body starts from where a launch reads rounded activations, q8_0 where it reads such a
  // cache.
  if (dtype_row(inputs[0].dtype).is_quantised && inputs[0].dtype != DType::Q8A &&
      inputs[0].dtype != DType::Q8_0)
    return type_error("cast reads no block-quantised values but q8a and q8_0");
  return std::vector<Type>{{*dtype, inputs[0].shape}};
}

constexpr OpRow elementwise(std::string_view name, int arity,
                            Result<std::vector<Type>> (*infer)(const Node&, std::span<const Type>),
                            std::string_view summary) {
  return OpRow{.name = name,
               .op_class = OpClass::Elementwise,
               .primitive = true,
               .min_inputs = arity,
               .max_inputs = arity,
               .infer = infer,
               .summary = summary};
}

constexpr std::array kElementwiseRows{
    elementwise("cast", 1, infer_cast, "x converted to the element type `to`, rounded to nearest even"),
    elementwise("neg", 1, infer_same, "-x"),
    elementwise("abs", 1, infer_same, "|x|"),
    elementwise("exp", 1, infer_real, "e^x"),
    elementwise("log", 1, infer_real, "natural logarithm of x"),
    elementwise("sqrt", 1, infer_real, "square root of x"),
    elementwise("rsqrt", 1, infer_real, "1 / sqrt(x)"),
    elementwise("sin", 1, infer_real, "sine of x in radians"),
    elementwise("cos", 1, infer_real, "cosine of x in radians"),
    elementwise("tanh", 1, infer_real, "hyperbolic tangent of x"),
    elementwise("not", 1, infer_logical, "logical not"),
    elementwise("add", 2, infer_same, "a + b"),
    elementwise("sub", 2, infer_same, "a - b"),
    elementwise("mul", 2, infer_same, "a * b"),
    elementwise("div", 2, infer_real, "a / b"),
    elementwise("max", 2, infer_same, "the larger of a and b; NaN if either is"),
    elementwise("min", 2, infer_same, "the smaller of a and b; NaN if either is"),
    elementwise("pow", 2, infer_real, "a to the power of b"),
    elementwise("less", 2, infer_compare, "a < b"),
    elementwise("less_equal", 2, infer_compare, "a <= b"),
    elementwise("equal", 2, infer_compare, "a == b"),
    elementwise("and", 2, infer_logical, "logical and"),
    elementwise("or", 2, infer_logical, "logical or"),
    elementwise("select", 3, infer_select, "a where the condition holds, else b"),
};

}  // namespace

std::span<const OpRow> elementwise_rows() {
  return kElementwiseRows;
}

}  // namespace hone
