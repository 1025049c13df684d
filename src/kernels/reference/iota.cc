// iota: the index along `axis`. A tile is a range of the output in row-major order.
#include "kernels/reference/elements.h"
#include "kernels/reference/list.h"

namespace hone::kernels::reference {
namespace {

constexpr std::int64_t kTileElements = 4096;

std::int64_t tile_count(const Call& call) {
  return ceil_divide(element_count(call.outputs[0]), kTileElements);
}

void run(const Call& call, std::int64_t tile) {
  const TensorView& out = call.outputs[0];
  std::int64_t axis = call.attributes->integer("axis");
  if (axis < 0) axis += out.rank;
  std::int64_t inner = 1;
  for (std::int64_t i = axis + 1; i < out.rank; ++i) inner *= out.shape[i];
  const std::int64_t end = std::min((tile + 1) * kTileElements, element_count(out));
  for (std::int64_t i = tile * kTileElements; i < end; ++i) {
    const std::int64_t index = i / inner % out.shape[axis];
    store_integers(out, offset_of(out, i), 1, 1, &index);
  }
}

std::string_view accepts(const Signature& signature) {
  const DType dtype = signature.outputs[0].dtype;
  return dtype == DType::I32 || dtype == DType::I64 ? "" : "needs an i32 or i64 result";
}

constexpr Kernel kKernels[] = {{.name = "iota.reference",
                                .op = "iota",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run}};

}  // namespace

KernelList iota_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
