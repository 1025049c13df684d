// Any bytes: the reader answers with an Error or with a checkpoint that keeps its promises.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "file/gguf.h"
#include "walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = hone::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  std::uint64_t sum = 0;
  if (result.ok() && !hone::testing::walk(*result, size, sum)) std::abort();
  if (!result.ok() && result.error().code != hone::ErrorCode::BadFile) std::abort();
  return 0;
}
