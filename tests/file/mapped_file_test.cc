#include "file/mapped_file.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace hone::testing {
namespace {

void expect_refused(const std::string& path, std::string_view message, std::string_view actual) {
  const auto file = MappedFile::open(path);
  ASSERT_FALSE(file.ok()) << path;
  EXPECT_EQ(file.error().code, ErrorCode::BadFile);
  EXPECT_EQ(file.error().message, message);
  EXPECT_EQ(file.error().actual, actual);
  EXPECT_TRUE(file.error().where.starts_with(path));
  EXPECT_FALSE(file.error().next_step.empty());
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string rule = "a checkpoint must be a regular file";
  expect_refused(fifo, rule, "a FIFO");
  expect_refused(folder.path(""), rule, "a directory");
  expect_refused("/dev/zero", rule, "a device");
  expect_refused(folder.path("missing"), "the file must exist and be readable", "No such file or directory");
  expect_refused(folder.write("empty", ""), "a checkpoint must not be empty", "0 bytes");
}

TEST(MappedFile, ReadsAtAnyOffset) {
  const TemporaryFolder folder;
  std::string text(100'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
  const auto file = MappedFile::open(folder.write("data", text));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), text.size());
  EXPECT_TRUE(std::ranges::equal((*file)->data(), std::as_bytes(std::span(text))));
  std::vector<std::byte> out(70'000);
  ASSERT_TRUE((*file)->read_at(30'000, out).ok());
  EXPECT_TRUE(std::ranges::equal(out, std::as_bytes(std::span(text)).subspan(30'000)));
  EXPECT_TRUE((*file)->read_at(100'000, {}).ok());
}

TEST(MappedFile, ReadsPastTheEndAreErrors) {
  const TemporaryFolder folder;
  const std::string path = folder.write("data", std::string(100, 'x'));
  const auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  std::vector<std::byte> out(10);
  for (const std::uint64_t offset : {std::uint64_t{91}, std::uint64_t{101}, ~std::uint64_t{0}}) {
    const Status status = (*file)->read_at(offset, out);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "a read must end inside the file");
    EXPECT_EQ(status.error().where, path + ", byte " + std::to_string(offset));
  }
  ASSERT_EQ(::truncate(path.c_str(), 50), 0);
  const Status shrunk = (*file)->read_at(45, out);
  ASSERT_FALSE(shrunk.ok());
  EXPECT_EQ(shrunk.error().message, "the file must not shrink while it is in use");
  EXPECT_EQ(shrunk.error().where, path + ", byte 50");
}

std::size_t resident_pages(const MappedFile& file) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Pages of this process, unlike mincore, which tells of the page cache.
  std::ifstream smaps("/proc/self/smaps");
  std::string line;
  bool inside = false;
  while (std::getline(smaps, line)) {
    if (line.find(file.path()) != std::string::npos) inside = true;
    if (inside && line.starts_with("Rss:")) return std::stoul(line.substr(4)) * 1024 / page;
  }
  return 0;
}

TEST(MappedFile, DropGivesPagesBackAndKeepsTheContent) {
  const TemporaryFolder folder;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::string text(64 * page + 5, 'y');
  const auto file = MappedFile::open(folder.write("data", text));
  ASSERT_TRUE(file.ok());
  const auto is_y = [](std::byte b) { return b == std::byte{'y'}; };
  EXPECT_TRUE(std::ranges::all_of((*file)->data(), is_y));
  EXPECT_EQ(resident_pages(**file), 65U);
  (*file)->drop(1, 2 * page);  // only the page from `page` to 2 * page lies inside
  EXPECT_EQ(resident_pages(**file), 64U);
  (*file)->drop(0, ~std::uint64_t{0});
  EXPECT_EQ(resident_pages(**file), 0U);
  (*file)->drop(~std::uint64_t{0}, 10);
  EXPECT_TRUE(std::ranges::all_of((*file)->data(), is_y));
}

}  // namespace
}  // namespace hone::testing
