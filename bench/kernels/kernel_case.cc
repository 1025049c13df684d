#include "kernel_case.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <utility>

#include "tensor/panel_layout.h"

namespace hone::bench {

namespace {
constexpr std::size_t kHugePage = std::size_t{1} << 21;
}  // namespace

void FreeBytes::operator()(std::byte* bytes) const {
  std::free(bytes);
}

AlignedBytes aligned_bytes(std::int64_t count) {
  auto size = static_cast<std::size_t>((count + 127) / 64 * 64);
  // Whole huge pages where there is nearly one: an engine's arenas are (exec/arena.cc).
  const bool huge = size >= kHugePage / 4;
  if (huge) size = (size + kHugePage - 1) / kHugePage * kHugePage;
  auto* bytes = static_cast<std::byte*>(std::aligned_alloc(huge ? kHugePage : 64, size));
  if (huge) madvise(bytes, size, MADV_HUGEPAGE);
  std::memset(bytes, 0, size);
  return AlignedBytes(bytes);
}

const Kernel* find_kernel(std::string_view stem, Isa isa) {
  for (const Kernel& kernel : all_kernels()) {
    if (!kernel.reference && kernel.isa == isa && kernel.name.starts_with(stem)) return &kernel;
  }
  return nullptr;
}

TensorView strided_view(DType dtype, std::vector<std::int64_t> shape, void* data) {
  TensorView view;
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (int axis = view.rank - 1; axis >= 0; --axis) {
    view.shape[axis] = shape[static_cast<std::size_t>(axis)];
    view.strides[axis] = stride;
    stride *= view.shape[axis];
  }
  return view;
}

// Every byte is 0x00 .. 0x3b: as halves of f16, bf16 or f32 all are finite, as f16 scales all are below 1.
PackedMatrix random_panels(DType dtype, std::int64_t n, std::int64_t k, std::uint64_t seed) {
  PackedMatrix matrix;
  matrix.byte_count = panel_bytes(dtype, n, k);
  matrix.bytes = aligned_bytes(matrix.byte_count);
  std::uint64_t state = seed * 2 + 1;
  for (std::int64_t i = 0; i < matrix.byte_count; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    matrix.bytes[static_cast<std::size_t>(i)] = static_cast<std::byte>((state >> 40) % 0x3c);
  }
  matrix.view.data = matrix.bytes.get();
  matrix.view.dtype = dtype;
  matrix.view.layout = Layout::Panel16;
  matrix.view.rank = 2;
  matrix.view.shape[0] = n;
  matrix.view.shape[1] = k;
  return matrix;
}

Launch::Launch(const Kernel& kernel, Call call, ThreadPool& pool)
    : kernel_(&kernel), pool_(&pool), tiles_(kernel.tile_count(call)) {
  const std::int64_t scratch = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
  for (int thread = 0; thread < pool.threads(); ++thread) {
    scratch_.push_back(aligned_bytes(scratch));
    call.scratch = scratch_.back().get();
    calls_.push_back(call);
  }
}

void Launch::run() {
  pool_->run(
      tiles_,
      [](void* context, std::int64_t begin, std::int64_t end, int thread) {
        const Launch& launch = *static_cast<const Launch*>(context);
        const Call& call = launch.calls_[static_cast<std::size_t>(thread)];
        for (std::int64_t tile = begin; tile < end; ++tile) launch.kernel_->run(call, tile);
      },
      this);
}

}  // namespace hone::bench
