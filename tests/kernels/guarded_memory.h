// Memory between two pages that nothing may touch: an access beyond either end of an operand stops the
// program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

namespace hone::test {

class GuardedMemory {
 public:
  // What stands around an operand, up to kMargin bytes of it, and in what is not written yet.
  static constexpr std::byte kFill{0x55};
  static constexpr std::int64_t kMargin = 256;

  GuardedMemory() = default;
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { release(); }

  // `bytes` that end at the guard page, up to `alignment`, filled with kFill.
  std::byte* at_the_end(std::int64_t bytes, std::int64_t alignment) {
    reserve(bytes);
    std::byte* data = base_ + size_ - (bytes + alignment - 1) / alignment * alignment;
    return place(data, bytes);
  }
  // `bytes` that start `distance` behind the guard page.
  std::byte* at_the_start(std::int64_t bytes, std::int64_t distance) {
    reserve(bytes + distance);
    return place(base_ + distance, bytes);
  }
  // True if the bytes about the operand are as they were filled.
  bool margins_untouched() const {
    const auto is_fill = [](std::byte byte) { return byte == kFill; };
    return std::all_of(first_, data_, is_fill) && std::all_of(data_ + bytes_, last_, is_fill);
  }

 private:
  void reserve(std::int64_t bytes) {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    if (base_ != nullptr && bytes + kMargin <= size_) return;
    release();
    size_ = (std::max<std::int64_t>(bytes, 60000) + kMargin + page - 1) / page * page;
    void* whole = mmap(nullptr, static_cast<std::size_t>(size_ + 2 * page), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) throw std::runtime_error("no memory for a guarded operand");
    base_ = static_cast<std::byte*>(whole) + page;
    if (mprotect(base_, static_cast<std::size_t>(size_), PROT_READ | PROT_WRITE) != 0)
      throw std::runtime_error("the pages of a guarded operand cannot be opened");
  }
  std::byte* place(std::byte* data, std::int64_t bytes) {
    data_ = data;
    bytes_ = bytes;
    first_ = std::max(base_, data - kMargin);
    last_ = std::min(base_ + size_, data + bytes + kMargin);
    std::memset(first_, static_cast<int>(kFill), static_cast<std::size_t>(last_ - first_));
    return data;
  }
  void release() {
    const std::int64_t page = sysconf(_SC_PAGESIZE);
    if (base_ != nullptr) munmap(base_ - page, static_cast<std::size_t>(size_ + 2 * page));
    base_ = nullptr;
  }

  std::byte* base_ = nullptr;
  std::int64_t size_ = 0;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::byte* first_ = nullptr;  // of the filled bytes
  std::byte* last_ = nullptr;
};

}  // namespace hone::test
