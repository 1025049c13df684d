#include "exec/arena.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace hone {

Result<Arena> Arena::create(std::int64_t bytes, std::string_view what, bool touch) {
  Arena arena;
  if (bytes <= 0) return arena;
  void* mapped = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return Error{ErrorCode::DoesNotFit,
                 Fault::User,
                 std::string(what),
                 "the system refuses the memory",
                 fmt::format("{} bytes", bytes),
                 std::strerror(errno),
                 "hone plan shows what would fit"};
  }
  arena.data_ = static_cast<std::byte*>(mapped);
  arena.bytes_ = bytes;
  if (touch) {
    const long page = sysconf(_SC_PAGESIZE);
    for (std::int64_t at = 0; at < bytes; at += page) arena.data_[at] = std::byte{0};
  }
  return arena;
}

Arena::~Arena() {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(bytes_));
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace hone
