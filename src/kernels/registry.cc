#include <vector>

#include "kernels/kernel.h"
#include "kernels/kernel_list.h"
#include "kernels/reference/list.h"

namespace hone::kernels {

using Take = void (*)(void* context, KernelList list);

namespace portable {
void list_kernels(Take take, void* context);
}
namespace avx2 {
void list_kernels(Take take, void* context);
}
namespace avx512 {
void list_kernels(Take take, void* context);
}
namespace amx {
void list_kernels(Take take, void* context);
}

}  // namespace hone::kernels

namespace hone {
namespace {

std::vector<Kernel> collect() {
  std::vector<Kernel> kernels;
  const kernels::Take take = [](void* context, kernels::KernelList list) {
    auto* out = static_cast<std::vector<Kernel>*>(context);
    out->insert(out->end(), list.data, list.data + list.count);
  };
  kernels::amx::list_kernels(take, &kernels);
  kernels::avx512::list_kernels(take, &kernels);
  kernels::avx2::list_kernels(take, &kernels);
  kernels::portable::list_kernels(take, &kernels);
  kernels::reference::list_kernels(take, &kernels);
  return kernels;
}

}  // namespace

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> kernels = collect();
  return kernels;
}

}  // namespace hone
