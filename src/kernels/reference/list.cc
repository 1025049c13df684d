#include "kernels/reference/list.h"

namespace hone::kernels::reference {

void list_kernels(void (*take)(void* context, KernelList list), void* context) {
  const KernelList groups[] = {
      elementwise_kernels(),   fused_elementwise_kernels(),
      reduce_kernels(),        matmul_kernels(),
      swiglu_mlp_kernels(),    gather_kernels(),
      concat_kernels(),        iota_kernels(),
      copy_kernels(),          state_append_kernels(),
      rms_norm_kernels(),      softmax_kernels(),
      rope_kernels(),          attention_kernels(),
      quantize_q8a_kernels(),  routing_kernels(),
      expert_matmul_kernels(), projection_kernels(),
      layer_norm_kernels(),    norm_add_kernels(),
  };
  for (const KernelList& group : groups) take(context, group);
}

}  // namespace hone::kernels::reference
