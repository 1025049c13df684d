// A group of kernels of one source file. Plain pointers: it crosses from objects compiled for an ISA level.
#pragma once

#include "kernels/kernel.h"

namespace hone::kernels {

struct KernelList {
  const Kernel* data = nullptr;
  int count = 0;
};

}  // namespace hone::kernels
