#include "file/safetensors_index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hone::testing {
namespace {

TEST(SafetensorsIndex, ReadsTheWeightMap) {
  const auto index = parse_safetensors_index(
      R"({"metadata": {"total_size": 5, "x": [{"weight_map": 1}, null, true, -1, 2.5]}, "weight_map":)"
      R"( {"b": "two.safetensors", "a": "one.safetensors", "c": "two.safetensors"}, "last": ["x"]})",
      "index");
  ASSERT_TRUE(index.ok()) << index.error().message << index.error().where;
  EXPECT_EQ(index->shards, (std::vector<std::string>{"two.safetensors", "one.safetensors"}));
  ASSERT_EQ(index->entries.size(), 3U);
  EXPECT_EQ(index->entries[0].tensor, "b");
  EXPECT_EQ(index->entries[0].shard, 0U);
  EXPECT_EQ(index->entries[1].shard, 1U);
  EXPECT_EQ(index->entries[2].shard, 0U);
}

struct BrokenIndex {
  const char* name;
  std::string text;
  const char* rule;
  const char* place;
};

void PrintTo(const BrokenIndex& broken, std::ostream* out) {
  *out << broken.name;
}

class IndexBroken : public ::testing::TestWithParam<BrokenIndex> {};

TEST_P(IndexBroken, NamesRuleAndPlace) {
  const BrokenIndex& broken = GetParam();
  const auto index = parse_safetensors_index(broken.text, "index");
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().code, ErrorCode::BadFile);
  EXPECT_EQ(index.error().message, broken.rule);
  EXPECT_EQ(index.error().where, fmt::format("index, {}", broken.place));
  EXPECT_FALSE(index.error().expected.empty());
  EXPECT_FALSE(index.error().actual.empty());
}

std::string many(std::string_view key, std::string_view value, std::size_t count) {
  std::string out = R"({"weight_map":{)";
  for (std::size_t i = 0; i < count; ++i) {
    out += fmt::format("{}\"{}{}\":\"{}{}.safetensors\"", i == 0 ? "" : ",", key, i, value, i);
  }
  return out + "}}";
}

std::string deep(std::size_t depth) {
  return R"({"metadata":)" + std::string(depth, '[') + std::string(depth, ']') + R"(,"weight_map":{}})";
}

constexpr const char* kIndexJson = "the index must be valid JSON";
constexpr const char* kMap = "weight_map must be an object of file names";
constexpr const char* kFile = "weight_map must name .safetensors files of its own folder";
const BrokenIndex kBrokenIndexes[] = {
    {"NotAnObject", "[]", "the index must be a JSON object", "line 1:2, byte 1"},
    {"Number", "7", "the index must be a JSON object", "line 1:2, byte 1"},
    {"Cut", R"({"weight_map":{)", kIndexJson, "line 1:16, byte 15"},
    {"ZeroByte", std::string("{\"weight_map\":{}}\0", 18), kIndexJson, "line 1:18, byte 17"},
    {"NoMap", "{\n}", "the index must have a weight_map", "line 2:2, byte 3"},
    {"TwoMaps", R"({"weight_map":{},"weight_map":{}})", "weight_map must not repeat", "line 1:30, byte 29"},
    {"MapIsList", R"({"weight_map":[]})", kMap, "line 1:16, byte 15"},
    {"MapIsText", R"({"weight_map":"x"})", kMap, "line 1:18, byte 17"},
    {"FileIsNumber", R"({"weight_map":{"a":null}})", kMap, "line 1:24, byte 23"},
    {"FileIsObject", R"({"weight_map":{"a":{}}})", kMap, "line 1:21, byte 20"},
    {"FileElsewhere", R"({"weight_map":{"a":"../x.safetensors"}})", kFile, "line 1:38, byte 37"},
    {"FileIsPickle", R"({"weight_map":{"a":"x.bin"}})", kFile, "line 1:27, byte 26"},
    {"NoName", R"({"weight_map":{"":"x.safetensors"}})",
     "a tensor name must be text without control characters", "line 1:18, byte 17"},
    {"Twice", R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})", "a tensor name must not repeat",
     "line 1:39, byte 38"},
    {"Deep", deep(65), "objects and arrays must not be nested too deep", "line 1:78, byte 77"},
    {"ManyFiles", many("t", "f", 4097), "the number of files must not exceed the limit of this reader",
     "line 1:112511, byte 112510"},
    {"Large", std::string((16U << 20U) + 1, ' '), "the JSON text must not exceed the limit of this reader",
     "line 1:1, byte 0"},
};

INSTANTIATE_TEST_SUITE_P(All, IndexBroken, ::testing::ValuesIn(kBrokenIndexes),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(SafetensorsIndex, TensorsAreBounded) {
  std::string text = R"({"weight_map":{)";
  for (std::size_t i = 0; i <= SafetensorsIndexLimits::kTensors; ++i) {
    text += fmt::format("{}\"{}\":\"f.safetensors\"", i == 0 ? "" : ",", i);
  }
  const auto index = parse_safetensors_index(text + "}}", "index");
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.error().message, "the tensor count must not exceed the limit of this reader");
}

}  // namespace
}  // namespace hone::testing
