// The kernel groups that are not matmuls against weights, one per source file.
#pragma once

#include "kernels/kernel_list.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

KernelList attention_kernels();
KernelList concat_kernels();
KernelList copy_kernels();
KernelList layer_norm_kernels();
KernelList matmul_strided_kernels();
KernelList norm_add_kernels();
KernelList reduce_kernels();
KernelList rms_norm_kernels();
KernelList rope_kernels();
KernelList routing_kernels();
KernelList softmax_kernels();
KernelList state_append_kernels();
KernelList strip_kernels();

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
