// Any bytes: the reader answers with an Error or with a checkpoint that keeps its promises, from memory and
// from a file alike.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "file/safetensors.h"
#include "walk.h"

namespace {

// True if a file of these bytes, which lies in memory, is read.
bool reads_as_file(std::span<const std::uint8_t> bytes) {
  static const int file = ::memfd_create("fuzz", 0);
  if (::ftruncate(file, 0) != 0 ||
      ::pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  return hone::read_safetensors("/proc/self/fd/" + std::to_string(file)).ok();
}

// A header of `length` bytes that holds one string of almost that length. No fuzzer finds inputs this large.
bool reads_long(std::uint64_t length) {
  std::vector<std::byte> bytes(8 + length, std::byte{'x'});
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + 8, "{\"", 2);
  return hone::parse_safetensors(bytes, "long").ok();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  if (reads_long(hone::SafetensorsLimits::kHeaderBytes + 1)) std::abort();
  if (reads_long(hone::SafetensorsLimits::kStringBytes + 8)) std::abort();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = hone::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  std::uint64_t sum = 0;
  if (result.ok() && !hone::testing::walk(*result, size, sum)) std::abort();
  if (!result.ok() && result.error().code != hone::ErrorCode::BadFile) std::abort();
  // A system call or two each: not for every input.
  if (size > 0 && size % 8 == 0 && reads_as_file({data, size}) != result.ok()) std::abort();
  return 0;
}
