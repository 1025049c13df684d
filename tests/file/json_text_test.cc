#include "file/json_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"

namespace hone::testing {
namespace {

TEST(JsonText, ReadsEveryKindOfValue) {
  const std::string text =
      R"({"a": [1, -2, 2.5, true, false, null, "x"], "b": {"c": [], "d": {}}, "e": 18446744073709551615})";
  const auto value = parse_json(text, "config.json");
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(*value, nlohmann::json::parse(text));
  EXPECT_EQ(value->at("e").get<std::uint64_t>(), 18446744073709551615U);
}

struct BrokenText {
  const char* name;
  std::string text;
  const char* rule;
  const char* place;
};

void PrintTo(const BrokenText& broken, std::ostream* out) {
  *out << broken.name;
}

class JsonBroken : public ::testing::TestWithParam<BrokenText> {};

TEST_P(JsonBroken, NamesRuleAndPlace) {
  const BrokenText& broken = GetParam();
  const auto value = parse_json(broken.text, "config.json");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::BadFile);
  EXPECT_EQ(value.error().fault, Fault::File);
  EXPECT_EQ(value.error().message, broken.rule);
  EXPECT_EQ(value.error().where, fmt::format("config.json, {}", broken.place));
  EXPECT_FALSE(value.error().expected.empty());
  EXPECT_FALSE(value.error().actual.empty());
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

constexpr const char* kValid = "the text must be valid JSON";
const BrokenText kBrokenTexts[] = {
    {"Empty", "", kValid, "line 1:1, byte 0"},
    {"Cut", "{\"a\":", kValid, "line 1:6, byte 5"},
    {"SecondLine", "{\n \"a\": ?}", kValid, "line 2:8, byte 9"},
    {"NaN", R"({"a": NaN})", kValid, "line 1:8, byte 7"},
    {"Infinity", R"({"a": Infinity})", kValid, "line 1:8, byte 7"},
    {"MinusInfinity", R"({"a": -Infinity})", kValid, "line 1:9, byte 8"},
    {"TooLarge", R"({"a": 1e999})", kValid, "line 1:13, byte 12"},
    {"Comment", "{/* */}", kValid, "line 1:3, byte 2"},
    {"TrailingText", "{} x", kValid, "line 1:5, byte 4"},
    {"ZeroByteBehind", std::string("{}\0}", 4), kValid, "line 1:3, byte 2"},
    {"ZeroByteLast", std::string("{}\0", 3), kValid, "line 1:3, byte 2"},
    {"InvalidUtf8", "[\"\xff\"]", kValid, "line 1:4, byte 3"},
    {"TwoKeys", R"({"a": 1, "b": {"c": 1, "c": 2}})", "a key must not repeat in its object",
     "line 1:27, byte 26"},
    {"Deep", nested(65), "objects and arrays must not be nested too deep", "line 1:66, byte 65"},
    {"Large", std::string((1U << 20U) + 1, ' '), "the JSON text must not exceed the limit of this reader",
     "line 1:1, byte 0"},
};

INSTANTIATE_TEST_SUITE_P(All, JsonBroken, ::testing::ValuesIn(kBrokenTexts),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(JsonText, DeepestNestingIsAccepted) {
  EXPECT_TRUE(parse_json(nested(64), "x").ok());
  EXPECT_TRUE(parse_json(nested(100'000), "x", {.depth = 100'000}).ok());
}

TEST(JsonText, AReasonIsPlainText) {
  const auto value = parse_json("[\"\xff\x01", "x");
  ASSERT_FALSE(value.ok());
  for (const char c : value.error().actual) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << value.error().actual;
  EXPECT_EQ(value.error().actual.find("json.exception"), std::string::npos);
}

TEST(JsonText, AFileMustHoldAnObject) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_json_object(folder.write("good", "{}")).ok());
  const std::string path = folder.write("bad", "[1]");
  const auto list = read_json_object(path);
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().message, "the JSON value of the file must be an object");
  EXPECT_EQ(list.error().actual, "array");
  EXPECT_EQ(list.error().where, path + ", line 1:1, byte 0");
}

TEST(JsonText, HeapBytesCoverTheTree) {
  const auto value =
      parse_json(R"({"a long key that owns memory": ["a long text that owns memory", 1]})", "x");
  ASSERT_TRUE(value.ok());
  EXPECT_GE(json_heap_bytes(*value), 300);
  EXPECT_LE(json_heap_bytes(*value), 600);
  EXPECT_EQ(json_heap_bytes(nlohmann::json(1)), 0);
}

}  // namespace
}  // namespace hone::testing
