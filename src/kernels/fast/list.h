// Every fast kernel source of one ISA level, by name. Included only by sources compiled with
// HONE_ISA_NAMESPACE.
#pragma once

#include "kernels/kernel_list.h"

// The name of a kernel of this level: HONE_KERNEL_NAME("softmax.f32") is "softmax.f32.avx2".
#define HONE_TEXT_OF(name) #name
#define HONE_TEXT_OF_VALUE(name) HONE_TEXT_OF(name)
#define HONE_KERNEL_NAME(stem) stem "." HONE_TEXT_OF_VALUE(HONE_ISA_NAMESPACE)

namespace hone::kernels::HONE_ISA_NAMESPACE {

// The level of the object this is compiled into.
inline constexpr Isa kThisIsa = kIsaLevels[HONE_ISA_LEVEL];

// Calls `take(context, list)` for each group, best kernels of an op first.
void list_kernels(void (*take)(void* context, KernelList list), void* context);

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
