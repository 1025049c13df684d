// Reductions along any axis: in index order, in double, rounded once. No elements: sum 0, mean NaN, max -inf.
#include <cmath>
#include <limits>

#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kTileElements = 64;
constexpr std::int64_t kRun = 256;

enum class Reduction { Sum, Mean, Max };

std::int64_t tile_count(const Call& call) {
  return ceil_divide(element_count(call.outputs[0]), kTileElements);
}

double reduce_one(Reduction reduction, const TensorView& in, std::int64_t offset, std::int64_t stride,
                  std::int64_t count) {
  double sum = reduction == Reduction::Max ? -std::numeric_limits<double>::infinity() : 0.0;
  double values[kRun];
  for (std::int64_t first = 0; first < count; first += kRun) {
    const std::int64_t length = std::min(kRun, count - first);
    load_reals(in, offset + first * stride, stride, length, values);
    for (std::int64_t i = 0; i < length; ++i) {
      if (reduction == Reduction::Max) {
        if (values[i] > sum || std::isnan(values[i])) sum = values[i];
        if (std::isnan(sum)) return sum;
      } else {
        sum += values[i];
      }
    }
  }
  return reduction == Reduction::Mean ? sum / static_cast<double>(count) : sum;
}

template <Reduction R>
void run(const Call& call, std::int64_t tile) {
  const TensorView& in = call.inputs[0];
  const TensorView& out = call.outputs[0];
  std::int64_t axis = call.attributes->integer("axis");
  if (axis < 0) axis += in.rank;
  TensorView kept = in;  // the input's other axes, in the order of the output's elements
  kept.rank = 0;
  for (int i = 0; i < in.rank; ++i) {
    if (i == axis) continue;
    kept.shape[kept.rank] = in.shape[i];
    kept.strides[kept.rank++] = in.strides[i];
  }
  const std::int64_t end = std::min((tile + 1) * kTileElements, element_count(out));
  for (std::int64_t i = tile * kTileElements; i < end; ++i) {
    const double value = reduce_one(R, in, offset_of(kept, i), in.strides[axis], in.shape[axis]);
    store_reals(out, offset_of(out, i), 1, 1, &value);
  }
}

template <Reduction R>
constexpr Kernel kernel(std::string_view name, std::string_view op) {
  return Kernel{.name = name,
                .op = op,
                .reference = true,
                .accepts = needs_plain,
                .tile_count = tile_count,
                .run = run<R>};
}

constexpr Kernel kKernels[] = {kernel<Reduction::Sum>("reduce_sum.reference", "reduce_sum"),
                               kernel<Reduction::Mean>("reduce_mean.reference", "reduce_mean"),
                               kernel<Reduction::Max>("reduce_max.reference", "reduce_max")};

}  // namespace

KernelList reduce_kernels() {
  return {kKernels, static_cast<int>(std::size(kKernels))};
}

}  // namespace hone::kernels::reference
