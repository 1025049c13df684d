// The kernel lists of the matmul family of one ISA level.
#pragma once

#include "kernels/fast/list.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

KernelList matmul_float_kernels();
KernelList matmul_int8_kernels();
KernelList matmul_bf16_kernels();
KernelList swiglu_mlp_kernels();
KernelList quantize_q8a_kernels();
KernelList gather_kernels();
KernelList expert_matmul_kernels();
KernelList projection_kernels();

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
