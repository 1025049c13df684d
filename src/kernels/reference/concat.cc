// concat: a tile is one input, copied to its place along the axis.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

std::int64_t tile_count(const Call& call) {
  return call.input_count;
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& in = call.inputs[tile];
  std::int64_t axis = call.attributes->integer("axis");
  if (axis < 0) axis += in.rank;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < tile; ++i) begin += call.inputs[i].shape[axis];
  TensorView place = call.outputs[0];
  place.shape[axis] = in.shape[axis];
  place.data = static_cast<std::byte*>(place.data) + dtype_bytes(place.dtype, begin * place.strides[axis]);
  copy_elements(in, place, 0, element_count(in));
}

constexpr Kernel kKernels[] = {{.name = "concat.reference",
                                .op = "concat",
                                .reference = true,
                                .accepts = needs_plain,
                                .tile_count = tile_count,
                                .run = run}};

}  // namespace

KernelList concat_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
