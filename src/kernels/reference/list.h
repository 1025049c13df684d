// The reference kernels: one plain kernel per op, computed in double and rounded once. Every other kernel is
// checked against them. Compiled once, for any x86-64.
#pragma once

#include "kernels/kernel_list.h"

namespace hone::kernels::reference {

KernelList elementwise_kernels();
KernelList fused_elementwise_kernels();
KernelList reduce_kernels();
KernelList matmul_kernels();
KernelList swiglu_mlp_kernels();
KernelList gather_kernels();
KernelList concat_kernels();
KernelList iota_kernels();
KernelList copy_kernels();
KernelList state_append_kernels();
KernelList rms_norm_kernels();
KernelList layer_norm_kernels();
KernelList norm_add_kernels();
KernelList softmax_kernels();
KernelList rope_kernels();
KernelList attention_kernels();
KernelList quantize_q8a_kernels();
KernelList routing_kernels();
KernelList expert_matmul_kernels();
KernelList projection_kernels();

// Calls `take(context, list)` for each of the above.
void list_kernels(void (*take)(void* context, KernelList list), void* context);

}  // namespace hone::kernels::reference
