#include "exec/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace hone {
namespace {

// Asks for huge pages where they fit inside [data, data + bytes): no byte outside the arena becomes resident.
// A step streams over all weights; with pages of 4 KiB one in 64 lines waits for a walk of the page table,
// which in a virtual machine is two walks in one: decode gained 5 %. Refused, all works as before. The price:
// where a machine gives its free huge pages back to its host, each is backed anew at its first write, and the
// first load after that takes several times as long (1.6 GB: 3 s, then 0.3 s).
void ask_for_huge_pages(std::byte* data, std::int64_t bytes) {
  constexpr std::uintptr_t kHuge = std::uintptr_t{1} << 21;
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (address + kHuge - 1) / kHuge * kHuge;
  const std::uintptr_t end = (address + static_cast<std::uintptr_t>(bytes)) / kHuge * kHuge;
  if (begin < end) madvise(data + (begin - address), end - begin, MADV_HUGEPAGE);
}

}  // namespace

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
  ask_for_huge_pages(arena.data_, bytes);
  if (touch) {
    const long page = sysconf(_SC_PAGESIZE);
    for (std::int64_t at = 0; at < bytes; at += page) arena.data_[at] = std::byte{0};
  }
  return arena;
}

std::int64_t Arena::resident_bytes() const {
  if (data_ == nullptr) return 0;
  const long page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages(static_cast<std::size_t>((bytes_ + page - 1) / page));
  if (mincore(data_, static_cast<std::size_t>(bytes_), pages.data()) != 0) return 0;
  return page * std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return (p & 1U) != 0; });
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
