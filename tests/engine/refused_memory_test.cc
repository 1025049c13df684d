// Compiling a model while the system refuses memory: whichever allocation fails, it ends in std::bad_alloc
// and nothing is destroyed twice or half made. (Session and the commands make an error of it.)
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

#include "engine/compile.h"
#include "file/open.h"

namespace {

// Allocations of this thread until one is refused; below 0: none is.
thread_local std::int64_t allocations_left = -1;

}  // namespace

// Out of line: inlined into a delete beside it, g++ takes free() for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* const out = std::malloc(size == 0 ? 1 : size)) return out;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace hone::test {
namespace {

TEST(RefusedMemory, CompilingEndsInBadAllocWhereverItFails) {
  const Result<Checkpoint> checkpoint =
      open_checkpoint(std::string(HONE_TEST_DATA) + "/gguf/llama-256-Q8_0.gguf");
  ASSERT_TRUE(checkpoint.ok());
  EngineOptions options;
  options.threads = 1;
  constexpr std::int64_t kMost = 1'000'000'000;
  ASSERT_TRUE(compile(*checkpoint, options).ok());  // tables that live as long as the program
  allocations_left = kMost;
  const bool compiled = compile(*checkpoint, options).ok();
  const std::int64_t needed = kMost - allocations_left;
  allocations_left = -1;
  ASSERT_TRUE(compiled);
  ASSERT_GT(needed, 1000);
  // A step that shares no factor with what repeats in the passes.
  const std::int64_t step = needed / (HONE_TEST_SANITIZED ? 101 : 997) + 1;
  int refused = 0;
  for (std::int64_t at = 0; at < needed; at += step) {
    allocations_left = at;
    try {
      (void)compile(*checkpoint, options).ok();
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    allocations_left = -1;
  }
  EXPECT_GT(refused, 90);
}

}  // namespace
}  // namespace hone::test
