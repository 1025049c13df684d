#include "file/gguf_writer.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>

#include "file/gguf.h"
#include "temporary_folder.h"

namespace hone::testing {
namespace {

std::vector<std::byte> counting_bytes(std::size_t count, unsigned start) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(start + i);
  return out;
}

TEST(GgufWriter, StreamsTensorsInPieces) {
  const TemporaryFolder folder;
  const std::string path = folder.path("out.gguf");
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_tensor("a", DType::F32, {3, 3});    // 36 bytes, 28 of padding
  writer.add_tensor("b", DType::Q4_0, {1, 32});  // 18 bytes
  ASSERT_TRUE(writer.begin(path).ok());
  const std::vector<std::byte> a = counting_bytes(36, 1);
  const std::vector<std::byte> b = counting_bytes(18, 101);
  ASSERT_TRUE(writer.append(std::span(a).first(5)).ok());
  ASSERT_TRUE(writer.append(std::span(a).subspan(5)).ok());
  EXPECT_FALSE(std::filesystem::exists(path)) << "a file must not appear before it is complete";
  ASSERT_TRUE(writer.append(b).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(std::filesystem::file_size(path), *writer.file_bytes());

  const Result<Checkpoint> result = read_gguf(path);
  ASSERT_TRUE(result.ok()) << result.error().message;
  std::vector<std::byte> got(36);
  ASSERT_TRUE(result->read_tensor(*result->find_tensor("a"), 0, got).ok());
  EXPECT_EQ(got, a);
  got.resize(18);
  ASSERT_TRUE(result->read_tensor(*result->find_tensor("b"), 0, got).ok());
  EXPECT_EQ(got, b);
}

TEST(GgufWriter, CopiesEveryMetadataValueUnchanged) {
  const Result<Checkpoint> source = read_gguf(HONE_TEST_DATA "/gguf/qwen3-256-Q4_0.gguf");
  ASSERT_TRUE(source.ok());
  GgufWriter writer;
  for (const MetadataEntry& entry : source->metadata.entries()) writer.add_value(entry.key, entry.value);
  const std::int64_t minus_five = -5;
  writer.add_value("x.i16", MetadataValue::from_signed(MetadataType::I16, minus_five));
  writer.add_value("x.u64", MetadataValue::from_unsigned(MetadataType::U64, ~0ULL));
  writer.add_value("x.f64", MetadataValue::from_real(MetadataType::F64, 1e300));
  writer.add_value("x.bool", MetadataValue::from_bool(true));
  const std::vector<std::byte> bytes = *writer.header();
  const Result<Checkpoint> copy = parse_gguf(bytes, "copy.gguf");
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  for (const MetadataEntry& entry : source->metadata.entries()) {
    const MetadataValue* value = copy->metadata.find(entry.key);
    ASSERT_NE(value, nullptr) << entry.key;
    EXPECT_EQ(value->type_text(), entry.value.type_text());
    EXPECT_EQ(value->bits(), entry.value.bits());
    EXPECT_EQ(value->as_string(), entry.value.as_string());
    if (const auto array = entry.value.as_array()) {
      EXPECT_TRUE(std::ranges::equal(array->bytes(), value->as_array()->bytes())) << entry.key;
    }
  }
  EXPECT_EQ(copy->metadata.find("x.i16")->as_integer(), -5);
  EXPECT_EQ(copy->metadata.find("x.u64")->bits(), ~0ULL);
  EXPECT_EQ(copy->metadata.find("x.f64")->as_real(), 1e300);
  EXPECT_EQ(copy->metadata.find("x.bool")->as_bool(), true);
}

TEST(GgufWriter, RefusesWhatReadersWouldRefuse) {
  const auto error_of = [](auto&& fill) {
    GgufWriter writer;
    fill(writer);
    const auto header = writer.header();
    EXPECT_FALSE(header.ok());
    EXPECT_TRUE(header.ok() || header.error().code == ErrorCode::Usage);
    return header.ok() ? std::string() : header.error().message;
  };
  const std::string name_rule = "a key or tensor name must be one that readers accept";
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_u32("", 1); }), name_rule);
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_u32("a\nb", 1); }), name_rule);
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_tensor(std::string(257, 'x'), DType::F32, {1}); }), name_rule);
  EXPECT_EQ(error_of([](GgufWriter& w) {
              w.add_u32("k", 1);
              w.add_u32("k", 2);
            }),
            "a key or tensor name must not repeat");
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_tensor("t", DType::Bool, {1}); }),
            "the type must be one that GGUF has");
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_tensor("t", DType::F32, {1, 1, 1, 1, 1}); }),
            "a tensor must have at most 4 dimensions");
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_tensor("t", DType::F32, {4, 0}); }),
            "dimensions must be at least 1 and their product below 2^63");
  EXPECT_EQ(error_of([](GgufWriter& w) { w.add_tensor("t", DType::Q8_0, {32, 33}); }),
            "a row must be a whole number of blocks and the size below 2^64");
  EXPECT_EQ(GgufWriter(12).header().error().message, "the alignment must be a power of two of at least 8");
}

TEST(GgufWriter, IncompleteFilesNeverAppear) {
  const TemporaryFolder folder;
  const std::string path = folder.path("out.gguf");
  {
    GgufWriter writer;
    writer.add_tensor("a", DType::F32, {4});
    ASSERT_TRUE(writer.begin(path).ok());
    const std::vector<std::byte> piece(12);
    ASSERT_TRUE(writer.append(piece).ok());
    const Status over = writer.append(piece);
    ASSERT_FALSE(over.ok());
    EXPECT_EQ(over.error().message, "a piece must end inside its tensor");
    const Status early = writer.finish();
    ASSERT_FALSE(early.ok());
    EXPECT_EQ(early.error().message, "every tensor must be written in full before finish");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(OutputFile, NamesWhatCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_FALSE(OutputFile::create(folder.path("")).ok());
  const auto missing = OutputFile::create(folder.path("no/such/folder"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::BadFile);
  EXPECT_EQ(missing.error().message, "the output file must be writable");
  // /dev/full takes no byte: as a disk without space.
  const auto full = OutputFile::create("/dev/full");
  ASSERT_TRUE(full.ok());
  const Status written = (*full)->append(std::vector<std::byte>(1));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "the output must be written in full");
}

}  // namespace
}  // namespace hone::testing
