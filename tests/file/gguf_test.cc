#include "file/gguf.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

#include "file/ggml_types.h"
#include "gguf_sample.h"
#include "temporary_folder.h"
#include "walk.h"

namespace hone::testing {
namespace {

TEST(Gguf, ReadsWhatTheWriterWrote) {
  const GgufSample sample;
  const Result<Checkpoint> result = sample.parse();
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Checkpoint& checkpoint = *result;
  EXPECT_EQ(checkpoint.format, "gguf");
  EXPECT_EQ(checkpoint.path, "sample.gguf");
  EXPECT_EQ(checkpoint.header_bytes, sample.header_bytes);
  EXPECT_EQ(checkpoint.header_bytes % 64, 0U);

  const Metadata& metadata = checkpoint.metadata;
  EXPECT_EQ(*metadata.required_integer("general.alignment"), 64);
  EXPECT_EQ(*metadata.required_string("general.architecture"), "llama");
  EXPECT_EQ(*metadata.required_integer("test.count"), 7);
  EXPECT_EQ(*metadata.required_real("test.scale"), 0.5);
  EXPECT_EQ(*metadata.required_bool("test.flag"), true);
  std::vector<std::string> words;
  metadata.required_array("test.words", ArrayKind::Strings)
      ->for_each_string([&words](std::uint64_t, std::string_view word) { words.emplace_back(word); });
  EXPECT_EQ(words, (std::vector<std::string>{"one", "", "three"}));
  const Result<MetadataArray> scores = metadata.required_array("test.scores", ArrayKind::Reals);
  ASSERT_TRUE(scores.ok());
  EXPECT_EQ(scores->size(), 2U);
  EXPECT_EQ(scores->real_at(1), 2.5);
  EXPECT_EQ(scores->real_at(2), std::nullopt);

  ASSERT_EQ(checkpoint.tensors.size(), 3U);
  const TensorEntry& a = checkpoint.tensors[0];
  EXPECT_EQ(a.name, "tensor.a");
  EXPECT_EQ(a.dtype, DType::F32);
  EXPECT_EQ(a.type_name, "f32");
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(a.offset, sample.header_bytes);
  EXPECT_EQ(a.bytes, 32U);
  const TensorEntry& b = checkpoint.tensors[1];
  EXPECT_EQ(b.dtype, DType::Q8_0);
  EXPECT_EQ(b.offset, sample.header_bytes + 64);
  EXPECT_EQ(b.bytes, 68U);
  const TensorEntry& c = checkpoint.tensors[2];
  EXPECT_EQ(c.shape, (std::vector<std::int64_t>{3, 2, 1, 5}));
  EXPECT_EQ(c.offset, sample.header_bytes + 192);
  EXPECT_EQ(c.bytes, 60U);
  EXPECT_EQ(c.elements(), 30);
  EXPECT_EQ(checkpoint.find_tensor("tensor.b"), &b);
  EXPECT_EQ(checkpoint.find_tensor("tensor.d"), nullptr);
}

TEST(Gguf, ReadsVersion2) {
  GgufSample sample;
  sample.put(4, std::uint32_t{2});
  EXPECT_TRUE(sample.parse().ok());
}

TEST(Gguf, DefaultAlignmentIs32) {
  const GgufSample sample(32);
  const Result<Checkpoint> result = sample.parse();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->metadata.find("general.alignment"), nullptr);
  EXPECT_EQ(result->header_bytes % 32, 0U);
  EXPECT_EQ(result->tensors[2].offset - result->header_bytes, 128U);
}

TEST(Gguf, TheDataBeginsAtTheAlignmentThatTheFileNames) {
  for (std::size_t length = 1; length <= 256; length += 8) {
    GgufWriter writer(256);
    writer.add_string("general.name", std::string(length, 'x'));
    writer.add_tensor("tensor.a", DType::F32, {2, 4});
    std::vector<std::byte> bytes = *writer.header();
    const std::uint64_t begin = bytes.size();
    bytes.resize(begin + 32);
    const Result<Checkpoint> result = parse_gguf(bytes, "aligned.gguf");
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(begin % 256, 0U);
    EXPECT_EQ(result->tensors[0].offset, begin) << length;
  }
}

TEST(Gguf, KeepsTypesItCannotDecode) {
  GgufSample sample;
  sample.put(sample.tensor_type_at("tensor.b"), std::uint32_t{9});  // q8_1: 36 bytes for 32 values
  const Result<Checkpoint> result = sample.parse();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->tensors[1].dtype, std::nullopt);
  EXPECT_EQ(result->tensors[1].type_name, "q8_1");
  EXPECT_EQ(result->tensors[1].bytes, 72U);
}

TEST(Gguf, AFileOfMetadataAloneIsValid) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  std::vector<std::byte> bytes = *writer.header();
  bytes.resize(4 + 4 + 8 + 8 + 8 + 20 + 4 + 8 + 5);  // without the padding
  const Result<Checkpoint> result = parse_gguf(bytes, "vocabulary.gguf");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->header_bytes, bytes.size());
}

TEST(Gguf, ReadsModelFiles) {
  struct Expected {
    const char* name;
    std::size_t tensors;
    const char* architecture;
    DType dtype;
  };
  for (const Expected& expected : {Expected{"llama-256-Q4_1.gguf", 21, "llama", DType::Q4_1},
                                   Expected{"llama-256-Q8_0.gguf", 21, "llama", DType::Q8_0},
                                   Expected{"qwen3-256-Q4_0.gguf", 24, "qwen3", DType::Q4_0}}) {
    const std::string path = std::string(HONE_TEST_DATA "/gguf/") + expected.name;
    const Result<Checkpoint> result = read_gguf(path);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->tensors.size(), expected.tensors) << expected.name;
    EXPECT_EQ(*result->metadata.required_string("general.architecture"), expected.architecture);
    const TensorEntry* embedding = result->find_tensor("token_embd.weight");
    ASSERT_NE(embedding, nullptr);
    EXPECT_EQ(embedding->dtype, expected.dtype);
    EXPECT_EQ(embedding->shape, (std::vector<std::int64_t>{512, 256}));
    EXPECT_EQ(result->metadata.required_array("tokenizer.ggml.tokens", ArrayKind::Strings)->size(), 512U);
    std::uint64_t sum = 0;
    EXPECT_TRUE(walk(*result, std::filesystem::file_size(path), sum));
    ASSERT_EQ(result->files.size(), 1U);
    // The last tensor ends the file, but for padding.
    std::uint64_t end = 0;
    for (const TensorEntry& tensor : result->tensors) end = std::max(end, tensor.offset + tensor.bytes);
    EXPECT_LT(result->files[0]->size() - end, 32U);
  }
}

TEST(Gguf, MetadataOutlivesTheCheckpoint) {
  Metadata metadata;
  {
    Result<Checkpoint> result = read_gguf(HONE_TEST_DATA "/gguf/llama-256-Q8_0.gguf");
    ASSERT_TRUE(result.ok());
    metadata = result->metadata;
  }
  EXPECT_EQ(*metadata.required_string("general.architecture"), "llama");
}

// Sizes of the block structures in ggml-common.h.
TEST(GgmlTypes, BlockSizes) {
  const std::map<std::string_view, std::pair<std::uint64_t, std::uint64_t>> expected{
      {"q4_0", {32, 2 + 16}},
      {"q4_1", {32, 4 + 16}},
      {"q5_0", {32, 2 + 4 + 16}},
      {"q5_1", {32, 4 + 4 + 16}},
      {"q8_0", {32, 2 + 32}},
      {"q2_k", {256, 16 + 64 + 4}},
      {"q3_k", {256, 32 + 64 + 12 + 2}},
      {"q4_k", {256, 4 + 12 + 128}},
      {"q5_k", {256, 4 + 12 + 32 + 128}},
      {"q6_k", {256, 128 + 64 + 16 + 2}},
      {"q8_k", {256, 4 + 256 + 32}},
      {"iq4_nl", {32, 2 + 16}},
      {"iq4_xs", {256, 2 + 2 + 4 + 128}},
      {"mxfp4", {32, 1 + 16}},
  };
  for (const auto& [name, size] : expected) {
    const auto found = std::ranges::find(ggml_types(), name, &GgmlType::name);
    ASSERT_NE(found, ggml_types().end()) << name;
    EXPECT_EQ(found->block_elements, size.first) << name;
    EXPECT_EQ(found->block_bytes, size.second) << name;
  }
}

TEST(GgmlTypes, AgreeWithTheElementTypes) {
  std::set<std::uint32_t> ids;
  for (const GgmlType& type : ggml_types()) {
    EXPECT_TRUE(ids.insert(type.id).second) << type.name;
    EXPECT_EQ(ggml_type(type.id), &type);
    if (!type.dtype) continue;
    const DTypeRow& row = dtype_row(*type.dtype);
    EXPECT_EQ(row.name, type.name);
    EXPECT_EQ(row.block_elements, type.block_elements);
    EXPECT_EQ(row.block_bytes, type.block_bytes);
    EXPECT_EQ(ggml_type_of(*type.dtype), &type);
  }
  EXPECT_EQ(ggml_type(4), nullptr);
  EXPECT_EQ(ggml_type_of(DType::U8), nullptr);
}

}  // namespace
}  // namespace hone::testing
