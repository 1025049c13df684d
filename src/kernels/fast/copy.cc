// copy(x) -> the same elements in the output's layout, any unquantised type. Where the input runs along
// another axis than the output (a transpose), blocks of 16 x 16 keep both sides in cache lines.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/run_copy.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kElementsPerTile = 16384;
constexpr std::int64_t kBlock = 16;

// The group along which the input has stride 1, if it is not the innermost one; else -1.
int transposed_group(const Axes& axes, const TensorView& x) {
  for (int group = 0; group < axes.count; ++group) {
    if (stride_along(x, axes.last[group], axes.rank) == 1) return group == axes.count - 1 ? -1 : group;
  }
  return -1;
}

Axes axes_of(const Call& call) {
  return merge_axes(call.outputs[0], call.inputs, 1, call.outputs, 1);
}

std::int64_t copy_tiles(const Call& call) {
  const Axes axes = axes_of(call);
  const int group = transposed_group(axes, call.inputs[0]);
  if (group < 0 || axes.elements == 0) return blocks_of(axes.elements, kElementsPerTile);
  return axes.elements / axes.size[group] / axes.size[axes.count - 1] * blocks_of(axes.size[group], kBlock);
}

struct Side {
  char* data = nullptr;
  std::int64_t outer = 0;  // strides in elements: along the transposed group,
  std::int64_t inner = 0;  // and along the innermost one
};

template <class T>
void transpose_of(const Side& from, const Side& to, std::int64_t rows, std::int64_t columns) {
  const T* source = reinterpret_cast<const T*>(from.data);
  T* target = reinterpret_cast<T*>(to.data);
  for (std::int64_t begin = 0; begin < columns; begin += kBlock) {
    const std::int64_t end = smaller(columns, begin + kBlock);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = begin; column < end; ++column) {
        target[row * to.outer + column * to.inner] = source[row * from.outer + column * from.inner];
      }
    }
  }
}

// Splits `tile` into a block of the transposed group and an index over the remaining groups.
void copy_transposed(const Call& call, const Axes& axes, int group, std::int64_t tile) {
  const std::int64_t bytes = element_bytes(call.inputs[0].dtype);
  const std::int64_t blocks = blocks_of(axes.size[group], kBlock);
  const std::int64_t first = tile % blocks * kBlock;
  const std::int64_t rows = smaller(kBlock, axes.size[group] - first);
  const int inner = axes.count - 1;
  Side sides[2];
  for (int side = 0; side < 2; ++side) {
    const TensorView& view = side == 0 ? call.inputs[0] : call.outputs[0];
    sides[side].outer = stride_along(view, axes.last[group], axes.rank);
    sides[side].inner = stride_along(view, axes.last[inner], axes.rank);
    std::int64_t offset = first * sides[side].outer;
    std::int64_t index = tile / blocks;
    for (int i = inner - 1; i >= 0; --i) {
      if (i == group) continue;
      offset += index % axes.size[i] * stride_along(view, axes.last[i], axes.rank);
      index /= axes.size[i];
    }
    sides[side].data = static_cast<char*>(view.data) + offset * bytes;
  }
  switch (bytes) {
    case 1:
      transpose_of<std::uint8_t>(sides[0], sides[1], rows, axes.size[inner]);
      break;
    case 2:
      transpose_of<std::uint16_t>(sides[0], sides[1], rows, axes.size[inner]);
      break;
    case 4:
      transpose_of<std::uint32_t>(sides[0], sides[1], rows, axes.size[inner]);
      break;
    default:
      transpose_of<std::uint64_t>(sides[0], sides[1], rows, axes.size[inner]);
      break;
  }
}

void copy_run_tile(const Call& call, std::int64_t tile) {
  const Axes axes = axes_of(call);
  const int group = transposed_group(axes, call.inputs[0]);
  if (group >= 0) {
    copy_transposed(call, axes, group, tile);
    return;
  }
  copy_elements(axes, call.inputs[0], call.outputs[0], element_bytes(call.inputs[0].dtype),
                tile * kElementsPerTile, smaller(axes.elements, (tile + 1) * kElementsPerTile));
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("copy.bytes"), "copy", kThisIsa, false, accepts_copy, copy_tiles, copy_run_tile,
     nullptr},
};

}  // namespace

KernelList copy_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
