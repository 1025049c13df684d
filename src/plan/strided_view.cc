#include "plan/strided_view.h"

namespace hone {

std::vector<Dim> contiguous_strides(std::span<const Dim> shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

bool is_contiguous(const StridedView& view) {
  const std::vector<Dim> wanted = contiguous_strides(view.shape);
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (!(view.shape[i] == Dim(1)) && !(view.strides[i] == wanted[i])) return false;
  }
  return true;
}

namespace {

// Axes of extent 1 carry no stride; the others are cut into groups of equal products on both sides. Inside a
// group the old axes must be mergeable (stride(i) = stride(i+1) * extent(i+1)); the new ones divide the
// group's innermost stride.
std::optional<std::vector<Dim>> reshape_strides(const StridedView& input, const Shape& result) {
  std::vector<std::size_t> old_axes;
  std::vector<std::size_t> new_axes;
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    if (!(input.shape[i] == Dim(1))) old_axes.push_back(i);
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (!(result[i] == Dim(1))) new_axes.push_back(i);
  }
  std::vector<Dim> strides(result.size(), Dim(1));
  std::size_t o = 0;
  std::size_t n = 0;
  while (o < old_axes.size() && n < new_axes.size()) {
    const std::size_t old_begin = o;
    const std::size_t new_begin = n;
    Dim old_extent = input.shape[old_axes[o++]];
    Dim new_extent = result[new_axes[n++]];
    while (!(old_extent == new_extent)) {
      if (always_at_least(old_extent, new_extent) && n < new_axes.size()) {
        new_extent = new_extent * result[new_axes[n++]];
      } else if (always_at_least(new_extent, old_extent) && o < old_axes.size()) {
        old_extent = old_extent * input.shape[old_axes[o++]];
      } else {
        return std::nullopt;
      }
    }
    for (std::size_t i = old_begin; i + 1 < o; ++i) {
      const Dim merged = input.strides[old_axes[i + 1]] * input.shape[old_axes[i + 1]];
      if (!(input.strides[old_axes[i]] == merged)) return std::nullopt;
    }
    Dim stride = input.strides[old_axes[o - 1]];
    for (std::size_t i = n; i-- > new_begin;) {
      strides[new_axes[i]] = stride;
      stride = stride * result[new_axes[i]];
    }
  }
  if (o != old_axes.size() || n != new_axes.size()) return std::nullopt;
  return strides;
}

}  // namespace

std::optional<StridedView> apply_view(const Node& node, const StridedView& input, const Shape& result) {
  StridedView out{result, {}, input.offset};
  if (node.op == "reshape") {
    if (is_contiguous(input)) {
      out.strides = contiguous_strides(result);
      return out;
    }
    std::optional<std::vector<Dim>> strides = reshape_strides(input, result);
    if (!strides) return std::nullopt;
    out.strides = std::move(*strides);
    return out;
  }
  if (node.op == "permute") {
    for (const std::int64_t axis : *node.attributes.get<std::vector<std::int64_t>>("axes")) {
      out.strides.push_back(input.strides[static_cast<std::size_t>(axis)]);
    }
    return out;
  }
  if (node.op == "broadcast") {
    const std::size_t shift = result.size() - input.shape.size();
    out.strides.assign(result.size(), Dim(0));
    for (std::size_t i = 0; i < input.shape.size(); ++i) {
      if (input.shape[i] == result[shift + i]) out.strides[shift + i] = input.strides[i];
    }
    return out;
  }
  if (node.op == "slice") {
    const std::int64_t given = node.attributes.integer("axis");
    const auto axis =
        static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(result.size()) : given);
    out.strides = input.strides;
    out.offset = input.offset + (*node.attributes.get<std::vector<Dim>>("range"))[0] * input.strides[axis];
    return out;
  }
  return std::nullopt;
}

}  // namespace hone
