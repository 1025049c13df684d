// copy: the elements of a view in row-major order, written to a view of as many elements, perhaps of another
// shape.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kTileElements = 16384;

std::int64_t tile_count(const Call& call) {
  return ceil_divide(element_count(in_blocks(call.outputs[0])), kTileElements);
}

void run(const Call& call, std::int64_t tile) {
  const TensorView from = in_blocks(call.inputs[0]);
  const std::int64_t begin = tile * kTileElements;
  copy_elements(from, in_blocks(call.outputs[0]), begin,
                std::min(begin + kTileElements, element_count(from)));
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].dtype != signature.outputs[0].dtype) return "needs one element type";
  return needs_strided(signature);
}

constexpr Kernel kKernels[] = {{.name = "copy.reference",
                                .op = "copy",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run}};

}  // namespace

KernelList copy_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
