// Calls kernels of the registry outside any plan: operands in owned memory, tiles on a thread pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernel.h"

namespace hone::bench {

struct FreeBytes {
  void operator()(std::byte* bytes) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], FreeBytes>;
AlignedBytes aligned_bytes(std::int64_t count);  // 64-byte aligned, zeroed

// The first fast kernel whose name starts with `stem` at that level, or nullptr.
const Kernel* find_kernel(std::string_view stem, Isa isa);

TensorView strided_view(DType dtype, std::vector<std::int64_t> shape, void* data);

// A packed weight matrix [N,K] of random bytes that decode to finite values.
struct PackedMatrix {
  AlignedBytes bytes;
  std::int64_t byte_count = 0;
  TensorView view;
};
PackedMatrix random_panels(DType dtype, std::int64_t n, std::int64_t k, std::uint64_t seed);

// Runs all tiles of a call on the pool.
class Launch {
 public:
  Launch(const Kernel& kernel, Call call, ThreadPool& pool);
  void run();

 private:
  const Kernel* kernel_;
  ThreadPool* pool_;
  std::int64_t tiles_;
  std::vector<AlignedBytes> scratch_;  // one for each thread
  std::vector<Call> calls_;
};

}  // namespace hone::bench
