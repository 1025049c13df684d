// concat(x0, x1, ..) {axis} -> the inputs one after the other along `axis`, any unquantised type. A tile is a
// block of elements of one input.
#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/run_copy.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kElementsPerTile = 16384;

std::int64_t elements_of(const TensorView& view) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < view.rank; ++axis) elements *= view.shape[axis];
  return elements;
}

std::int64_t concat_tiles(const Call& call) {
  std::int64_t tiles = 0;
  for (int i = 0; i < call.input_count; ++i)
    tiles += blocks_of(elements_of(call.inputs[i]), kElementsPerTile);
  return tiles;
}

void concat_run(const Call& call, std::int64_t tile) {
  TensorView out = call.outputs[0];
  const std::int64_t bytes = element_bytes(out.dtype);
  const std::int64_t given = attribute_integer(call.attributes, "axis", 0);
  const int axis = static_cast<int>(given < 0 ? given + out.rank : given);
  std::int64_t before = 0;  // along the axis
  for (int i = 0; i < call.input_count; ++i) {
    const TensorView& x = call.inputs[i];
    const std::int64_t tiles = blocks_of(elements_of(x), kElementsPerTile);
    if (tile >= tiles) {
      tile -= tiles;
      before += x.shape[axis];
      continue;
    }
    out.data = static_cast<char*>(out.data) + before * out.strides[axis] * bytes;
    out.shape[axis] = x.shape[axis];
    const Axes axes = merge_axes(out, &x, 1, &out, 1);
    copy_elements(axes, x, out, bytes, tile * kElementsPerTile,
                  smaller(axes.elements, (tile + 1) * kElementsPerTile));
    return;
  }
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("concat.bytes"), "concat", kThisIsa, false, accepts_concat, concat_tiles, concat_run,
     nullptr},
};

}  // namespace

KernelList concat_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
