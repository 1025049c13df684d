#include "file/metadata.h"

#include <gtest/gtest.h>
#include <limits>

namespace hone::testing {
namespace {

Metadata sample() {
  Metadata metadata("model.gguf");
  metadata.add_integer("layers", 22);
  metadata.add_real("eps", 1e-5);
  metadata.add_bool("tied", true);
  metadata.add_string("name", "tiny");
  metadata.add_strings("words", std::vector<std::string>{"a", "bc", ""});
  metadata.add_integers("sizes", std::vector<std::int64_t>{-1, 2});
  metadata.add_reals("scores", std::vector<double>{0.5});
  metadata.add("huge", MetadataValue::from_unsigned(MetadataType::U64, ~0ULL));
  return metadata;
}

template <class T>
void expect_error(const Result<T>& result, std::string_view key, std::string_view expected,
                  std::string_view actual) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::BadModel);
  EXPECT_EQ(result.error().fault, Fault::File);
  EXPECT_EQ(result.error().where, "model.gguf, metadata key \"" + std::string(key) + "\"");
  EXPECT_EQ(result.error().expected, expected);
  EXPECT_EQ(result.error().actual, actual);
}

TEST(Metadata, TypedGetters) {
  const Metadata metadata = sample();
  EXPECT_EQ(*metadata.required_integer("layers"), 22);
  EXPECT_EQ(*metadata.required_real("eps"), 1e-5);
  EXPECT_EQ(*metadata.required_real("layers"), 22.0) << "an integer serves as a real";
  EXPECT_TRUE(*metadata.required_bool("tied"));
  EXPECT_EQ(*metadata.required_string("name"), "tiny");
  EXPECT_EQ(metadata.required_array("sizes", ArrayKind::Integers)->integer_at(0), -1);
  EXPECT_EQ(metadata.required_array("sizes", ArrayKind::Reals)->real_at(1), 2.0);
  EXPECT_EQ(metadata.required_array("scores", ArrayKind::Reals)->real_at(0), 0.5);
  std::string joined;
  metadata.required_array("words", ArrayKind::Strings)
      ->for_each_string([&joined](std::uint64_t index, std::string_view word) {
        joined += std::to_string(index) + std::string(word) + ";";
      });
  EXPECT_EQ(joined, "0a;1bc;2;");
}

TEST(Metadata, MissingKeysAreNamed) {
  const Metadata metadata = sample();
  expect_error(metadata.required_integer("heads"), "heads", "an integer", "no such key");
  expect_error(metadata.required_array("merges", ArrayKind::Strings), "merges", "an array of strings",
               "no such key");
  EXPECT_EQ(*metadata.optional_integer("heads"), std::nullopt);
  EXPECT_EQ(*metadata.optional_string("heads"), std::nullopt);
}

TEST(Metadata, WrongTypesAreNamed) {
  const Metadata metadata = sample();
  expect_error(metadata.required_integer("name"), "name", "an integer", "string");
  expect_error(metadata.optional_integer("eps"), "eps", "an integer", "f64");
  expect_error(metadata.required_integer("huge"), "huge", "an integer", "u64 above 2^63-1");
  expect_error(metadata.required_real("tied"), "tied", "a real", "bool");
  expect_error(metadata.required_bool("layers"), "layers", "a bool", "i64");
  expect_error(metadata.required_string("words"), "words", "a string", "array of string");
  expect_error(metadata.required_array("words", ArrayKind::Integers), "words", "an array of integers",
               "array of string");
  expect_error(metadata.optional_array("layers", ArrayKind::Integers), "layers", "an array of integers",
               "i64");
}

TEST(Metadata, CopiesStayValid) {
  Metadata copy;
  {
    const Metadata original = sample();
    copy = original;
  }
  copy.add_string("late", "x");
  EXPECT_EQ(*copy.required_string("name"), "tiny");
  EXPECT_EQ(copy.entries().back().key, "late");
}

template <class T>
MetadataArray array_of(MetadataType type, const std::vector<T>& values) {
  return {type, values.size(), std::as_bytes(std::span(values))};
}

TEST(MetadataArray, NumbersOfEveryType) {
  const std::vector<std::int8_t> i8{-1, 127};
  EXPECT_EQ(array_of(MetadataType::I8, i8).integer_at(0), -1);
  EXPECT_EQ(array_of(MetadataType::U8, i8).integer_at(0), 255);
  const std::vector<std::int16_t> i16{-2};
  EXPECT_EQ(array_of(MetadataType::I16, i16).integer_at(0), -2);
  EXPECT_EQ(array_of(MetadataType::U16, i16).integer_at(0), 65534);
  const std::vector<std::int32_t> i32{-3};
  EXPECT_EQ(array_of(MetadataType::I32, i32).integer_at(0), -3);
  EXPECT_EQ(array_of(MetadataType::U32, i32).integer_at(0), 4294967293);
  const std::vector<std::int64_t> i64{-4};
  EXPECT_EQ(array_of(MetadataType::I64, i64).integer_at(0), -4);
  EXPECT_EQ(array_of(MetadataType::U64, i64).integer_at(0), std::nullopt) << "2^64-4 has no int64";
  EXPECT_EQ(array_of(MetadataType::U64, i64).real_at(0), 18446744073709551612.0);
  const std::vector<float> f32{0.25F};
  EXPECT_EQ(array_of(MetadataType::F32, f32).real_at(0), 0.25);
  EXPECT_EQ(array_of(MetadataType::F32, f32).integer_at(0), std::nullopt);
  EXPECT_EQ(array_of(MetadataType::F32, f32).bool_at(0), std::nullopt);
  const std::vector<std::uint8_t> bools{0, 1};
  EXPECT_EQ(array_of(MetadataType::Bool, bools).bool_at(1), true);
  EXPECT_EQ(array_of(MetadataType::Bool, bools).bool_at(2), std::nullopt);
  EXPECT_EQ(array_of(MetadataType::Bool, bools).integer_at(1), std::nullopt);
}

}  // namespace
}  // namespace hone::testing
