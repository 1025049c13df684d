#include "file/gguf_split.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "file/gguf_writer.h"
#include "file/open.h"
#include "temporary_folder.h"

namespace hone::testing {
namespace {

struct Part {
  std::vector<std::string> names;
  std::uint32_t number;
  std::uint32_t count = 3;
  std::uint32_t tensors = 4;
};

// A part whose tensors hold 32 f32 values, all `value`.
std::string write_part(const TemporaryFolder& folder, std::string_view file, const Part& part, float value) {
  GgufWriter writer;
  if (part.number == 0) writer.add_string("general.architecture", "llama");
  writer.add_u32("split.no", part.number);
  writer.add_u32("split.count", part.count);
  writer.add_u32("split.tensors.count", part.tensors);
  for (const std::string& name : part.names) writer.add_tensor(name, DType::F32, {32});
  const auto header = writer.header();
  EXPECT_TRUE(header.ok());
  std::vector<std::byte> bytes = *header;
  const std::vector<float> values(32 * part.names.size(), value);
  const auto data = std::as_bytes(std::span(values));
  bytes.insert(bytes.end(), data.begin(), data.end());
  return folder.write(file, bytes);
}

std::string part_name(int number) {
  return fmt::format("m-{:05}-of-00003.gguf", number);
}

class GgufSplit : public ::testing::Test {
 protected:
  void SetUp() override {
    write_part(folder_, part_name(1), {{"a", "b"}, 0}, 1);
    write_part(folder_, part_name(2), {{"c"}, 1}, 2);
    write_part(folder_, part_name(3), {{"d"}, 2}, 3);
  }
  Error error_of(int part = 1) const {
    const auto result = open_checkpoint(folder_.path(part_name(part)));
    EXPECT_FALSE(result.ok());
    return result.ok() ? Error{} : result.error();
  }
  TemporaryFolder folder_;
};

TEST_F(GgufSplit, OpensFromAnyPart) {
  for (const int number : {1, 2, 3}) {
    const auto result = open_checkpoint(folder_.path(part_name(number)));
    ASSERT_TRUE(result.ok()) << result.error().message << result.error().actual;
    EXPECT_EQ(*result->metadata.required_string("general.architecture"), "llama");
    ASSERT_EQ(result->tensors.size(), 4U);
    ASSERT_EQ(result->files.size(), 3U);
    for (const auto& [name, expected] : {std::pair{"a", 1.0F}, {"b", 1.0F}, {"c", 2.0F}, {"d", 3.0F}}) {
      float value = 0;
      const TensorEntry* tensor = result->find_tensor(name);
      ASSERT_NE(tensor, nullptr) << name;
      ASSERT_TRUE(result->read_tensor(*tensor, 4, std::as_writable_bytes(std::span(&value, 1))).ok());
      EXPECT_EQ(value, expected) << name;
    }
  }
}

TEST_F(GgufSplit, MissingPartsAreAllNamed) {
  std::filesystem::remove(folder_.path(part_name(2)));
  std::filesystem::remove(folder_.path(part_name(3)));
  EXPECT_EQ(error_of().actual, "missing: m-00002-of-00003.gguf, m-00003-of-00003.gguf");
}

TEST_F(GgufSplit, APartMustHaveItsName) {
  const std::string path = write_part(folder_, "other.gguf", {{"a"}, 1}, 1);
  const auto result = open_checkpoint(path);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "the name of a part must say its number");
  EXPECT_EQ(result.error().expected, "a name that ends in -00002-of-00003.gguf");
}

TEST_F(GgufSplit, PartsMustAgree) {
  write_part(folder_, part_name(2), {{"c"}, 1, 3, 5}, 2);
  EXPECT_EQ(error_of().message, "the keys of a part must agree with its name and with the other parts");
  EXPECT_EQ(error_of().where, folder_.path(part_name(2)));
  write_part(folder_, part_name(2), {{"c", "a"}, 1}, 2);
  EXPECT_EQ(error_of().message, "the parts must have split.tensors.count tensors together");
  write_part(folder_, part_name(2), {{"a"}, 1}, 2);
  EXPECT_EQ(error_of().message, "a tensor must lie in one part only");
  EXPECT_EQ(error_of().where, folder_.path(part_name(2)));
  write_part(folder_, part_name(1), {{"a", "b"}, 7}, 1);
  EXPECT_EQ(error_of().message, "split.no is out of range");
  write_part(folder_, part_name(1), {{"a", "b"}, 0, 0}, 1);
  EXPECT_EQ(error_of().message, "split.count is out of range");
}

TEST_F(GgufSplit, OnePartIsAWhole) {
  const auto result = open_checkpoint(write_part(folder_, "single.gguf", {{"x"}, 0, 1, 1}, 1));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tensors.size(), 1U);
}

}  // namespace
}  // namespace hone::testing
