// top_k and take_along_axis.
#include <cmath>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

// --- top_k: a tile is one row

std::int64_t top_k_tiles(const Call& call) {
  return element_count(without_last(call.inputs[0], 1));
}

std::int64_t top_k_scratch(const Call& call) {
  return (last_extent(call.inputs[0]) + last_extent(call.outputs[0])) * 8;
}

bool ranks_above(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return a > b;
}

void run_top_k(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  const std::int64_t width = last_extent(x);
  const std::int64_t count = last_extent(out);
  auto* values = reinterpret_cast<double*>(call.scratch);
  auto* chosen = reinterpret_cast<std::int64_t*>(values + width);
  load_reals(x, offset_of(without_last(x, 1), tile), last_stride(x), width, values);
  for (std::int64_t j = 0; j < count; ++j) {
    std::int64_t best = -1;
    for (std::int64_t i = 0; i < width; ++i) {
      if (std::find(chosen, chosen + j, i) != chosen + j) continue;
      if (best < 0 || ranks_above(values[i], values[best])) best = i;
    }
    chosen[j] = best;
  }
  store_integers(out, offset_of(without_last(out, 1), tile), last_stride(out), count, chosen);
}

// --- take_along_axis: a tile is one row of the output

std::int64_t take_tiles(const Call& call) {
  return element_count(without_last(call.outputs[0], 1));
}

void run_take(const Call& call, std::int64_t tile) {
  const TensorView& x = call.inputs[0];
  const TensorView& indices = call.inputs[1];
  const TensorView& out = call.outputs[0];
  const std::int64_t given = call.attributes->integer("axis");
  const int axis = static_cast<int>(given < 0 ? given + x.rank : given);
  const std::int64_t width = last_extent(out);
  for (std::int64_t j = 0; j < width; ++j) {
    std::int64_t index = 0;
    load_integers(indices, offset_of(indices, tile * width + j), 1, 1, &index);
    // The element's place in the output, with its coordinate along the axis replaced.
    std::int64_t from = index * x.strides[axis];
    std::int64_t rest = tile * width + j;
    for (int i = out.rank - 1; i >= 0; --i) {
      if (i != axis) from += rest % out.shape[i] * x.strides[i];
      rest /= out.shape[i];
    }
    const std::int64_t to = offset_of(out, tile * width + j);
    if (is_real(x.dtype)) {
      double value = 0;
      load_reals(x, from, 1, 1, &value);
      store_reals(out, to, 1, 1, &value);
    } else {
      std::int64_t value = 0;
      load_integers(x, from, 1, 1, &value);
      store_integers(out, to, 1, 1, &value);
    }
  }
}

constexpr Kernel kKernels[] = {{.name = "top_k.reference",
                                .op = "top_k",
                                .reference = true,
                                .accepts = needs_plain,
                                .tile_count = top_k_tiles,
                                .run = run_top_k,
                                .scratch_bytes = top_k_scratch},
                               {.name = "take_along_axis.reference",
                                .op = "take_along_axis",
                                .reference = true,
                                .accepts = needs_plain,
                                .tile_count = take_tiles,
                                .run = run_take}};

}  // namespace

KernelList routing_kernels() {
  return {kKernels, 2};
}

}  // namespace hone::kernels::reference
