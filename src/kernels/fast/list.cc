#include "kernels/fast/list.h"

#include "kernels/fast/matmul_kernels.h"
#include "kernels/fast/vector_kernels.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

void list_kernels(void (*take)(void* context, KernelList list), void* context) {
  const KernelList groups[] = {matmul_int8_kernels(), matmul_bf16_kernels(),  matmul_float_kernels(),
                               swiglu_mlp_kernels(),  quantize_q8a_kernels(), gather_kernels(),
                               attention_kernels(),   copy_kernels(),         matmul_strided_kernels(),
                               reduce_kernels(),      rms_norm_kernels(),     norm_add_kernels(),
                               rope_kernels(),        softmax_kernels(),      state_append_kernels(),
                               strip_kernels(),       routing_kernels(),      expert_matmul_kernels(),
                               concat_kernels(),      projection_kernels(),   layer_norm_kernels()};
  for (const KernelList& group : groups) take(context, group);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
