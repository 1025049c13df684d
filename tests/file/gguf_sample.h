// A small valid GGUF file in memory, with the position of each of its parts, so that a test can break one of
// them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "file/gguf.h"
#include "file/gguf_writer.h"

namespace hone::testing {

struct GgufSample {
  std::vector<std::byte> bytes;
  std::uint64_t header_bytes = 0;

  // alignment 64 puts a general.alignment entry into the file.
  explicit GgufSample(std::uint32_t alignment = 64) {
    GgufWriter writer(alignment);
    writer.add_string("general.architecture", "llama");
    writer.add_u32("test.count", 7);
    writer.add_f32("test.scale", 0.5F);
    writer.add_bool("test.flag", true);
    writer.add_strings("test.words", std::vector<std::string>{"one", "", "three"});
    writer.add_f32s("test.scores", std::vector<float>{1.0F, 2.5F});
    const std::array<std::byte, 3> flags{std::byte{1}, std::byte{0}, std::byte{1}};
    writer.add_value("test.flags", MetadataValue::from_array(MetadataArray(MetadataType::Bool, 3, flags)));
    writer.add_tensor("tensor.a", DType::F32, {2, 4});
    writer.add_tensor("tensor.b", DType::Q8_0, {2, 32});
    writer.add_tensor("tensor.c", DType::F16, {3, 2, 1, 5});
    const auto header = writer.header();
    EXPECT_TRUE(header.ok());
    bytes = *header;
    header_bytes = bytes.size();
    // The last tensor ends the file: no padding behind it, so that cutting any byte leaves a broken file.
    bytes.resize(header_bytes + *writer.file_bytes() - header_bytes - padding_after(60, alignment));
  }

  static std::uint64_t padding_after(std::uint64_t size, std::uint64_t alignment) {
    return (alignment - size % alignment) % alignment;
  }

  std::uint64_t find(std::string_view text) const {
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t at = all.find(text);
    EXPECT_NE(at, std::string_view::npos) << text;
    return at;
  }

  // Of a metadata entry: u64 key length, key, u32 type, value.
  std::uint64_t key_at(std::string_view key) const { return find(key) - 8; }
  std::uint64_t type_at(std::string_view key) const { return find(key) + key.size(); }
  std::uint64_t value_at(std::string_view key) const { return type_at(key) + 4; }
  // Of an array value: u32 element type, u64 count, elements.
  std::uint64_t element_type_at(std::string_view key) const { return value_at(key); }
  std::uint64_t array_count_at(std::string_view key) const { return value_at(key) + 4; }
  std::uint64_t elements_at(std::string_view key) const { return value_at(key) + 12; }
  // Of a tensor: u64 name length, name, u32 dimensions, u64 each, u32 type, u64 offset.
  std::uint64_t name_at(std::string_view name) const { return find(name) - 8; }
  std::uint64_t dimensions_at(std::string_view name) const { return find(name) + name.size(); }
  std::uint64_t dimension_at(std::string_view name, std::uint64_t i) const {
    return dimensions_at(name) + 4 + 8 * i;
  }
  std::uint64_t tensor_type_at(std::string_view name) const {
    std::uint32_t count = 0;
    std::memcpy(&count, bytes.data() + dimensions_at(name), sizeof count);
    return dimension_at(name, count);
  }
  std::uint64_t offset_at(std::string_view name) const { return tensor_type_at(name) + 4; }

  template <class T>
  void put(std::uint64_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  void put_text(std::uint64_t at, std::string_view text) {
    std::memcpy(bytes.data() + at, text.data(), text.size());
  }

  Result<Checkpoint> parse() const { return parse_gguf(bytes, "sample.gguf"); }
};

}  // namespace hone::testing
