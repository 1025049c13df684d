#include "kernels/fast/list.h"
#include "kernels/fast/matmul_kernels.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// A level that has only the kernels which multiply in tiles.
void list_kernels(void (*take)(void* context, KernelList list), void* context) {
  const KernelList groups[] = {matmul_bf16_kernels(), swiglu_mlp_kernels(), projection_kernels()};
  for (const KernelList& group : groups) take(context, group);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
