// gather: rows of an embedding table. Decoding is exact and bound by memory, so the shared decoders do it.
#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

std::int64_t tile_count(const Call& call) {
  std::int64_t ids = 1;
  for (int axis = 0; axis < call.inputs[1].rank; ++axis) ids *= call.inputs[1].shape[axis];
  return ids;
}

void run(const Call& call, std::int64_t tile) {
  const std::int64_t row = static_cast<const std::int32_t*>(call.inputs[1].data)[tile];
  decode_table_row(call.inputs[0], row,
                   static_cast<float*>(call.outputs[0].data) + tile * call.inputs[0].shape[1]);
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("gather"), "gather", kThisIsa, false, accepts_gather, tile_count, run, nullptr}};

}  // namespace

KernelList gather_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
