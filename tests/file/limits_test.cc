// Hostile and huge headers: an answer in under one second and 64 MiB of memory. A program of its own, because
// the largest resident size of a process never falls.
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

#include "file/open.h"
#include "temporary_folder.h"

namespace hone::testing {
namespace {

constexpr bool kSanitized = HONE_TEST_SANITIZED;

std::uint64_t status_bytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(field)) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// Of this process: a machine busy with other work does not change it.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Growth of the largest resident size over the call. Resets it first (proc(5), clear_refs).
void expect_bounded(const std::string& path, std::string_view rule) {
  if (kSanitized) GTEST_SKIP() << "sanitizers change memory and time";
  std::ofstream("/proc/self/clear_refs") << "5";
  const std::uint64_t before = status_bytes("VmRSS");
  const double start = processor_seconds();
  const auto result = open_checkpoint(path);
  const double seconds = processor_seconds() - start;
  const std::uint64_t grown = status_bytes("VmHWM") - before;
  if (rule.empty()) {
    EXPECT_TRUE(result.ok()) << result.error().message;
  } else {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, rule);
  }
  EXPECT_LT(grown, 64U << 20U);
  EXPECT_LT(seconds, 1.0);
  ::testing::Test::RecordProperty("grown_bytes", std::to_string(grown));
  ::testing::Test::RecordProperty("seconds", std::to_string(seconds));
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_string(std::string& out, std::string_view text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}
std::string gguf_start(std::uint64_t tensors, std::uint64_t entries) {
  std::string out = "GGUF";
  put<std::uint32_t>(out, 3);
  put(out, tensors);
  put(out, entries);
  return out;
}

// A sparse file of `size` bytes that begins with `head`.
std::string sparse(const TemporaryFolder& folder, std::string_view head, std::uint64_t size) {
  const std::string path = folder.write("sparse", head);
  EXPECT_EQ(::truncate(path.c_str(), static_cast<off_t>(size)), 0);
  return path;
}

TEST(Limits, CountsThatALargeFileCouldHold) {
  const TemporaryFolder folder;
  expect_bounded(sparse(folder, gguf_start(1ULL << 33U, 1), 1ULL << 40U),
                 "the tensor count must not exceed the limit of this reader");
  expect_bounded(sparse(folder, gguf_start(1, 1ULL << 33U), 1ULL << 40U),
                 "the metadata count must not exceed the limit of this reader");
}

TEST(Limits, ArraysAreNotCopied) {
  const TemporaryFolder folder;
  std::string head = gguf_start(0, 1);
  put_string(head, "words");
  put<std::uint32_t>(head, 9);
  put<std::uint32_t>(head, 8);
  put<std::uint64_t>(head, 8'000'000);  // empty strings: 61 MiB of zeros
  expect_bounded(sparse(folder, head, 70ULL << 20U), "");
  head = gguf_start(0, 1);
  put_string(head, "words");
  put<std::uint32_t>(head, 9);
  put<std::uint32_t>(head, 8);
  put<std::uint64_t>(head, 1ULL << 30U);
  expect_bounded(sparse(folder, head, 1ULL << 34U), "the header must fit in 64 MiB");
}

TEST(Limits, ALongString) {
  const TemporaryFolder folder;
  std::string head = gguf_start(0, 1);
  put_string(head, "text");
  put<std::uint32_t>(head, 8);
  put<std::uint64_t>(head, 1ULL << 33U);
  expect_bounded(sparse(folder, head, 1ULL << 34U), "the header must fit in 64 MiB");
}

TEST(Limits, AsManyTensorsAsAreAccepted) {
  const TemporaryFolder folder;
  std::string bytes = gguf_start(65'536, 0);
  for (std::uint64_t i = 0; i < 65'536; ++i) {
    put_string(bytes, fmt::format("{:x>256}", i));
    put<std::uint32_t>(bytes, 4);
    for (int axis = 0; axis < 4; ++axis) put<std::uint64_t>(bytes, 1);
    put<std::uint32_t>(bytes, 24);
    put<std::uint64_t>(bytes, i * 32);
  }
  const std::string path = sparse(folder, bytes, bytes.size() + 65'537ULL * 32);
  bytes = std::string();
  expect_bounded(path, "");
}

TEST(Limits, AsManyEntriesAsAreAccepted) {
  const TemporaryFolder folder;
  std::string bytes = gguf_start(0, 65'536);
  for (std::uint64_t i = 0; i < 65'536; ++i) {
    put_string(bytes, fmt::format("{:x>256}", i));
    put<std::uint32_t>(bytes, 0);
    put<std::uint8_t>(bytes, 1);
  }
  const std::string path = folder.write("entries", bytes);
  bytes = std::string();
  expect_bounded(path, "");
}

TEST(Limits, ALongJsonHeader) {
  const TemporaryFolder folder;
  std::string header = "{";
  for (int i = 0; i < 65'536; ++i) {
    header += fmt::format(R"({}"{:x>170}":{{"dtype":"U8","shape":[1,1,1,1],"data_offsets":[{},{}]}})",
                          i == 0 ? "" : ",", i, i, i + 1);
  }
  header += "}";
  std::string bytes;
  put<std::uint64_t>(bytes, header.size());
  bytes += header;
  bytes.append(65'536, '\0');
  const std::string path = folder.write("long", bytes);
  bytes = std::string();
  header = std::string();
  expect_bounded(path, "");
}

TEST(Limits, DeepJson) {
  const TemporaryFolder folder;
  std::string bytes;
  put<std::uint64_t>(bytes, 15U << 20U);
  bytes += R"({"w":)" + std::string((15U << 20U) - 5, '[');
  const std::string path = folder.write("deep", bytes);
  bytes = std::string();
  expect_bounded(path, "a tensor must be described by an object");
}

TEST(Limits, ALongJsonString) {
  const TemporaryFolder folder;
  std::string bytes;
  put<std::uint64_t>(bytes, 15U << 20U);
  bytes += R"({")" + std::string((15U << 20U) - 2, 'x');
  const std::string path = folder.write("string", bytes);
  bytes = std::string();
  expect_bounded(path, "a string of the header must fit in 4 MiB");
}

}  // namespace
}  // namespace hone::testing
