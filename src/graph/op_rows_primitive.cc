#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "graph/op_rows.h"

namespace hone {

Result<std::size_t> normalise_axis(std::int64_t axis, std::size_t rank) {
  const std::int64_t signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return type_error(fmt::format("axis {} is outside the shape", axis),
                      fmt::format("an axis of {}..{}", -signed_rank, signed_rank - 1));
  }
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

namespace {

using Types = std::vector<Type>;

Status not_quantised(const Type& type, std::string_view what) {
  if (dtype_row(type.dtype).is_quantised) {
    return type_error(fmt::format("{} does not read block-quantised values", what));
  }
  return {};
}

Result<std::vector<Dim>> dims_attribute(const Node& node, std::string_view name) {
  const auto* dims = node.attributes.get<std::vector<Dim>>(name);
  if (dims == nullptr) return type_error(fmt::format("missing attribute `{}`", name), "a list of dims");
  return *dims;
}

Result<DType> dtype_attribute(const Node& node) {
  const auto* name = node.attributes.get<std::string>("dtype");
  const std::optional<DType> dtype = name == nullptr ? std::nullopt : dtype_from_name(*name);
  if (!dtype) return type_error("missing attribute `dtype`", "the name of an element type");
  return *dtype;
}

Result<Types> infer_constant(const Node& node, std::span<const Type>) {
  const auto* values = node.attributes.get<std::vector<double>>("values");
  if (values == nullptr) return type_error("a constant needs the attribute `values`", "a list of reals");
  Shape shape = HONE_TRY(dims_attribute(node, "shape"));
  const std::optional<std::int64_t> count = element_count(shape).as_constant();
  if (!count || *count != static_cast<std::int64_t>(values->size())) {
    return type_error("a constant has as many values as its shape has elements",
                      fmt::format("{} values", element_count(shape).to_string()));
  }
  return Types{{HONE_TRY(dtype_attribute(node)), std::move(shape)}};
}

Result<Types> infer_iota(const Node& node, std::span<const Type>) {
  Shape shape = HONE_TRY(dims_attribute(node, "shape"));
  HONE_TRY(normalise_axis(node.attributes.integer("axis"), shape.size()));
  return Types{{DType::I32, std::move(shape)}};
}

bool has_whole_rows(const Shape& shape) {
  const std::optional<std::int64_t> length = shape.empty() ? std::nullopt : shape.back().as_constant();
  return length && *length % dtype_row(DType::Q8A).block_elements == 0;
}

Result<Types> infer_reshape(const Node& node, std::span<const Type> inputs) {
  Shape shape = HONE_TRY(dims_attribute(node, "shape"));
  // Rows of whole q8a blocks have the same blocks in every shape of such rows.
  const bool whole_blocks =
      inputs[0].dtype == DType::Q8A && has_whole_rows(inputs[0].shape) && has_whole_rows(shape);
  if (!whole_blocks) HONE_TRY(not_quantised(inputs[0], "reshape"));
  if (!(element_count(shape) == element_count(inputs[0].shape))) {
    return type_error("reshape keeps the number of elements",
                      fmt::format("{} elements, not {} of {}", element_count(inputs[0].shape).to_string(),
                                  element_count(shape).to_string(), shape_to_string(shape)));
  }
  return Types{{inputs[0].dtype, std::move(shape)}};
}

Result<Types> infer_permute(const Node& node, std::span<const Type> inputs) {
  HONE_TRY(not_quantised(inputs[0], "permute"));
  const auto* axes = node.attributes.get<std::vector<std::int64_t>>("axes");
  const std::size_t rank = inputs[0].shape.size();
  if (axes == nullptr || axes->size() != rank) {
    return type_error("permute needs the attribute `axes`", fmt::format("a permutation of 0..{}", rank - 1));
  }
  std::vector<bool> seen(rank, false);
  Shape shape;
  for (const std::int64_t axis : *axes) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(axis)]) {
      return type_error("`axes` is not a permutation", fmt::format("each of 0..{} once", rank - 1));
    }
    seen[static_cast<std::size_t>(axis)] = true;
    shape.push_back(inputs[0].shape[static_cast<std::size_t>(axis)]);
  }
  return Types{{inputs[0].dtype, std::move(shape)}};
}

Result<Types> infer_broadcast(const Node& node, std::span<const Type> inputs) {
  HONE_TRY(not_quantised(inputs[0], "broadcast"));
  Shape shape = HONE_TRY(dims_attribute(node, "shape"));
  const Type target{inputs[0].dtype, shape};
  const Type both[] = {inputs[0], target};
  if (!(HONE_TRY(broadcast_shapes(both)) == shape)) {
    return type_error("the input does not broadcast to `shape`", shape_to_string(shape));
  }
  return Types{target};
}

Result<Types> infer_slice(const Node& node, std::span<const Type> inputs) {
  HONE_TRY(not_quantised(inputs[0], "slice"));
  const std::size_t axis = HONE_TRY(normalise_axis(node.attributes.integer("axis"), inputs[0].shape.size()));
  const std::vector<Dim> range = HONE_TRY(dims_attribute(node, "range"));
  if (range.size() != 2 || !always_at_least(range[0], Dim(0)) ||
      !always_at_least(range[1], range[0] + Dim(1)) || !always_at_least(inputs[0].shape[axis], range[1])) {
    return type_error("`range` is [begin, end) inside the axis, not empty",
                      fmt::format("0 <= begin < end <= {}", inputs[0].shape[axis].to_string()));
  }
  Shape shape = inputs[0].shape;
  shape[axis] = range[1] - range[0];
  return Types{{inputs[0].dtype, std::move(shape)}};
}

Result<Types> infer_reduce(const Node& node, std::span<const Type> inputs) {
  HONE_TRY(not_quantised(inputs[0], "a reduction"));
  const std::size_t axis = HONE_TRY(normalise_axis(node.attributes.integer("axis"), inputs[0].shape.size()));
  Shape shape = inputs[0].shape;
  if (node.attributes.integer("keep_dims") != 0) {
    shape[axis] = Dim(1);
  } else {
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  return Types{{inputs[0].dtype, std::move(shape)}};
}

Dim reduce_operations(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  return element_count(inputs[0].shape);
}

Result<Types> infer_matmul(const Node& node, std::span<const Type> inputs) {
  const Type& a = inputs[0];
  const Type& b = inputs[1];
  if (!dtype_row(a.dtype).is_float || !dtype_row(b.dtype).is_float)
    return type_error("matmul takes real operands");
  if (dtype_row(a.dtype).is_quantised && a.dtype != DType::Q8A) {
    return type_error("the left operand of matmul is not block-quantised, or q8a");
  }
  if (a.shape.empty() || b.shape.size() < 2) return type_error("matmul needs [..,M,K] and [..,K,N]");
  const bool transpose_b = node.attributes.integer("transpose_b") != 0;
  if (dtype_row(b.dtype).is_quantised && (!transpose_b || b.shape.size() != 2)) {
    return type_error("a block-quantised right operand is [N,K] with transpose_b", "blocks along K");
  }
  const Dim& k = b.shape[b.shape.size() - (transpose_b ? 1 : 2)];
  const Dim& n = b.shape[b.shape.size() - (transpose_b ? 2 : 1)];
  if (!(a.shape.back() == k)) {
    return type_error("the inner dims of matmul differ",
                      fmt::format("K = {} on both sides, not {}", a.shape.back().to_string(), k.to_string()));
  }
  // Leading axes (all but the matrix) broadcast; a 2-D right operand serves every leading axis of the left
  // one.
  const std::size_t a_matrix = std::min<std::size_t>(2, a.shape.size());
  const Type lead[] = {
      {DType::F32, Shape(a.shape.begin(), a.shape.end() - static_cast<std::ptrdiff_t>(a_matrix))},
      {DType::F32, Shape(b.shape.begin(), b.shape.end() - 2)}};
  Shape shape = HONE_TRY(broadcast_shapes(lead));
  if (a_matrix == 2) shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(n);
  return Types{{DType::F32, std::move(shape)}};
}

Dim matmul_operations(const Node&, std::span<const Type> inputs, std::span<const Type> outputs) {
  return Dim(2) * element_count(outputs[0].shape) * inputs[0].shape.back();
}

Result<Types> infer_gather(const Node&, std::span<const Type> inputs) {
  const Type& table = inputs[0];
  const Type& ids = inputs[1];
  if (table.shape.size() != 2 || !dtype_row(table.dtype).is_float) {
    return type_error("gather reads rows of a real table", "[V,D]");
  }
  if (ids.dtype != DType::I32) return type_error("gather takes row numbers of type i32", "i32");
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  return Types{{DType::F32, std::move(shape)}};
}

Dim gather_bytes(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  Type rows = inputs[0];
  rows.shape[0] = element_count(inputs[1].shape);
  return type_bytes(rows) + type_bytes(inputs[1]);
}

Result<Types> infer_concat(const Node& node, std::span<const Type> inputs) {
  const std::size_t axis = HONE_TRY(normalise_axis(node.attributes.integer("axis"), inputs[0].shape.size()));
  Shape shape = inputs[0].shape;
  for (const Type& type : inputs.subspan(1)) {
    if (type.dtype != inputs[0].dtype || type.shape.size() != shape.size()) {
      return type_error("concat joins values of one element type and rank");
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (i != axis && !(type.shape[i] == shape[i])) return type_error("concat: the other axes must agree");
    }
    shape[axis] = shape[axis] + type.shape[axis];
  }
  HONE_TRY(not_quantised(inputs[0], "concat"));
  return Types{{inputs[0].dtype, std::move(shape)}};
}

Result<Types> infer_copy(const Node&, std::span<const Type> inputs) {
  return Types{inputs[0]};
}

// Rows of a dense step are [B,T,..], those of a flattened one [1,N,..] beside the sequence of each.
Result<Types> infer_state_append(const Node&, std::span<const Type> inputs) {
  const Type& state = inputs[0];
  const Type& rows = inputs[1];
  const Type& positions = inputs[2];
  const bool flat = inputs.size() == 4;
  if (state.dtype != rows.dtype && (state.dtype != DType::Q8_0 || rows.dtype != DType::F32))
    return type_error("state_append: the new rows have the state's element type, or f32 for a state of q8_0");
  if (state.shape.size() < 2 || state.shape.size() != rows.shape.size() ||
      !(rows.shape[0] == (flat ? Dim(1) : state.shape[0])) ||
      !std::equal(state.shape.begin() + 2, state.shape.end(), rows.shape.begin() + 2)) {
    return type_error(
        "state_append takes state [B,C,..], rows [B,T,..], positions [B,T]; or rows [1,N,..], "
        "positions [1,N], sequence [1,N]");
  }
  if (positions.dtype != DType::I32 || positions.shape.size() != 2 ||
      !(positions.shape[0] == rows.shape[0]) || !(positions.shape[1] == rows.shape[1])) {
    return type_error("state_append: positions are i32 [B,T]", "i32[B,T]");
  }
  if (flat && !(inputs[3] == positions))
    return type_error("state_append: the sequence of each row is i32 [1,N]", type_to_string(positions));
  return Types{state};
}

Result<Types> infer_state_assign(const Node&, std::span<const Type> inputs) {
  if (!(inputs[0] == inputs[1])) return type_error("state_assign: the new value has the state's type");
  return Types{inputs[0]};
}

Dim assign_bytes(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  return type_bytes(inputs[1]);
}

Dim append_bytes(const Node&, std::span<const Type> inputs, std::span<const Type>) {
  Dim sum(0);
  for (const Type& type : inputs.subspan(1)) sum = sum + type_bytes(type);
  return sum;
}

constexpr OpRow view(std::string_view name, Result<Types> (*infer)(const Node&, std::span<const Type>),
                     std::string_view summary) {
  return OpRow{.name = name,
               .op_class = OpClass::View,
               .primitive = true,
               .min_inputs = 1,
               .max_inputs = 1,
               .infer = infer,
               .aliases = 0,
               .operations = no_operations,
               .summary = summary};
}

constexpr OpRow reduction(std::string_view name, std::string_view summary) {
  return OpRow{.name = name,
               .op_class = OpClass::Reduction,
               .primitive = true,
               .min_inputs = 1,
               .max_inputs = 1,
               .infer = infer_reduce,
               .operations = reduce_operations,
               .summary = summary};
}

constexpr std::array kPrimitiveRows{
    OpRow{.name = "constant",
          .op_class = OpClass::Source,
          .primitive = true,
          .infer = infer_constant,
          .operations = no_operations,
          .summary = "the attribute `values`, row-major, as `dtype` [`shape`]"},
    OpRow{.name = "iota",
          .op_class = OpClass::Source,
          .primitive = true,
          .infer = infer_iota,
          .operations = no_operations,
          .summary = "the index along `axis`, as i32 of `shape`"},
    view("reshape", infer_reshape, "the same elements, row-major, as `shape`"),
    view("permute", infer_permute, "axis i of the result is axis axes[i] of x"),
    view("broadcast", infer_broadcast, "x repeated along its axes of extent 1 to `shape`"),
    view("slice", infer_slice, "[begin, end) of `range` along `axis`"),
    reduction("reduce_sum", "the sum along `axis`"),
    reduction("reduce_mean", "the mean along `axis`"),
    reduction("reduce_max", "the maximum along `axis`; NaN if any is"),
    OpRow{.name = "matmul",
          .op_class = OpClass::Contraction,
          .primitive = true,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_matmul,
          .operations = matmul_operations,
          .summary = "a [..,M,K] x b [..,K,N], or b [..,N,K] with transpose_b; f32"},
    OpRow{.name = "gather",
          .op_class = OpClass::Data,
          .primitive = true,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_gather,
          .operations = no_operations,
          .bytes_read = gather_bytes,
          .summary = "rows of table [V,D] by number, decoded to f32"},
    OpRow{.name = "concat",
          .op_class = OpClass::Data,
          .primitive = true,
          .min_inputs = 1,
          .max_inputs = -1,
          .infer = infer_concat,
          .operations = no_operations,
          .summary = "the inputs one after the other along `axis`"},
    OpRow{.name = "copy",
          .op_class = OpClass::Data,
          .primitive = true,
          .min_inputs = 1,
          .max_inputs = 1,
          .infer = infer_copy,
          .operations = no_operations,
          .summary = "x, contiguous in memory"},
    OpRow{.name = "state_append",
          .op_class = OpClass::State,
          .primitive = true,
          .min_inputs = 3,
          .max_inputs = 4,
          .infer = infer_state_append,
          .aliases = 0,
          .operations = no_operations,
          .bytes_read = append_bytes,
          .summary =
              "state [B,C,..] with rows [B,T,..] written at positions [B,T], or rows [1,N,..] at positions "
              "[1,N] of sequences [1,N]; negative positions are skipped"},
    OpRow{.name = "state_assign",
          .op_class = OpClass::State,
          .primitive = true,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_state_assign,
          .aliases = 0,
          .operations = no_operations,
          .bytes_read = assign_bytes,
          .summary = "the state with all its elements replaced by a new value's"},
};

}  // namespace

std::span<const OpRow> primitive_rows() {
  return kPrimitiveRows;
}

}  // namespace hone
