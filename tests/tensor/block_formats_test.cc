// The block formats against blocks and values written by the formats' own encoders and decoders
// (tests/data/gguf; safetensors files made with gguf-py and checked against ggml).
#include "tensor/block_formats.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace hone {
namespace {

// Name -> bytes of each tensor of a small trusted safetensors file: u64 header length, JSON header, data.
std::map<std::string, std::string> read_tensors(const std::string& name) {
  std::ifstream file(std::string(HONE_TEST_DATA) + "/gguf/" + name + ".safetensors", std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  const std::string bytes = stream.str();
  std::map<std::string, std::string> out;
  if (bytes.size() < 8) return out;
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  const nlohmann::json json = nlohmann::json::parse(bytes.substr(8, header));
  for (const auto& [key, value] : json.items()) {
    if (key == "__metadata__") continue;
    const std::size_t begin = value["data_offsets"][0];
    const std::size_t end = value["data_offsets"][1];
    out[key] = bytes.substr(8 + header + begin, end - begin);
  }
  return out;
}

std::vector<float> as_floats(const std::string& bytes) {
  std::vector<float> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

const std::pair<const char*, DType> kFormats[] = {
    {"Q4_0", DType::Q4_0}, {"Q4_1", DType::Q4_1}, {"Q5_0", DType::Q5_0}, {"Q5_1", DType::Q5_1},
    {"Q8_0", DType::Q8_0}, {"F16", DType::F16},   {"BF16", DType::BF16}};

TEST(BlockFormats, DecodesTheReferenceBlocksBitForBit) {
  for (const auto& [name, dtype] : kFormats) {
    for (const char* folder : {"dequant/", "quant/"}) {
      auto tensors = read_tensors(std::string(folder) + name);
      const std::vector<float> expected = as_floats(tensors["values"]);
      ASSERT_GE(expected.size(), 384u) << name;
      std::vector<float> actual(expected.size());
      ASSERT_TRUE(decode_row(dtype, tensors["blocks"].data(), static_cast<std::int64_t>(actual.size()),
                             actual.data()));
      EXPECT_EQ(bits_of(actual), bits_of(expected)) << folder << name;
    }
  }
}

TEST(BlockFormats, EncodesAsTheReferenceEncoderByteForByte) {
  for (const auto& [name, dtype] : kFormats) {
    auto tensors = read_tensors(std::string("quant/") + name);
    const std::vector<float> source = as_floats(tensors["source"]);
    ASSERT_EQ(source.size(), 2048u) << name;
    std::string actual(static_cast<std::size_t>(dtype_bytes(dtype, 2048)), '\1');
    ASSERT_TRUE(encode_row(dtype, source.data(), 2048, actual.data()));
    EXPECT_EQ(actual, tensors["blocks"]) << name;
  }
}

TEST(BlockFormats, EveryF16ComesBackThroughF32) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(bits));
    const bool is_nan = (bits & 0x7fffu) > 0x7c00u;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    const std::uint16_t expected = static_cast<std::uint16_t>(is_nan ? bits | 0x200u : bits);
    ASSERT_EQ(f32_to_f16(value), expected) << bits;
  }
  // A signalling NaN becomes quiet, as in the conversion instructions.
  EXPECT_EQ(std::bit_cast<std::uint32_t>(f16_to_f32(0xfc01)), 0xffc02000u);
}

// Between neighbours a < b of f16, the middle goes to the even one, and the next f32 on either side to the
// nearer one.
TEST(BlockFormats, F16RoundsToNearestEven) {
  for (unsigned bits = 0; bits < 0x7bffu; ++bits) {
    const float a = f16_to_f32(static_cast<std::uint16_t>(bits));
    const float b = f16_to_f32(static_cast<std::uint16_t>(bits + 1));
    const float middle = a + (b - a) / 2;  // exact in f32
    const unsigned even = (bits & 1u) == 0 ? bits : bits + 1;
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), bits + 1) << bits;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000u) << bits;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
}

TEST(BlockFormats, Bf16RoundsToNearestEvenAndKeepsNan) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const bool is_nan = (bits & 0x7fffu) > 0x7f80u;
    const float value = bf16_to_f32(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(f32_to_bf16(value), is_nan ? bits | 0x40u : bits);
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(BlockFormats, F8ValuesByTheirFormulas) {
  for (unsigned bits = 0; bits < 128; ++bits) {
    const std::uint8_t byte = static_cast<std::uint8_t>(bits);
    const unsigned exponent4 = bits >> 3;
    const unsigned exponent5 = bits >> 2;
    float actual = 0;
    ASSERT_TRUE(decode_row(DType::F8E4M3, &byte, 1, &actual));
    if (bits == 0x7f) {
      EXPECT_TRUE(std::isnan(actual));
    } else {
      const double expected = exponent4 == 0
                                  ? (bits & 7u) / 8.0 * std::pow(2.0, -6)
                                  : (1 + (bits & 7u) / 8.0) * std::pow(2.0, static_cast<int>(exponent4) - 7);
      EXPECT_EQ(actual, expected) << bits;
    }
    ASSERT_TRUE(decode_row(DType::F8E5M2, &byte, 1, &actual));
    if (exponent5 < 31) {
      const double expected = exponent5 == 0
                                  ? (bits & 3u) / 4.0 * std::pow(2.0, -14)
                                  : (1 + (bits & 3u) / 4.0) * std::pow(2.0, static_cast<int>(exponent5) - 15);
      EXPECT_EQ(actual, expected) << bits;
    }
  }
}

TEST(BlockFormats, Q8AByHand) {
  float values[32] = {};
  values[0] = 254;  // scale 2
  values[1] = 3;    // 1.5 -> 2
  values[2] = 5;    // 2.5 -> 2
  values[3] = -254;
  values[4] = 0.5f;
  const BlockQ8A block = encode_q8a_block(values);
  EXPECT_EQ(block.scale, 2);
  EXPECT_EQ(block.sum, 8);  // scale * quant_sum, not the 8.5 of the unrounded values
  EXPECT_EQ(block.quant_sum, 127 + 2 + 2 - 127);
  EXPECT_EQ(block.quants[0], 127);
  EXPECT_EQ(block.quants[1], 2);
  EXPECT_EQ(block.quants[2], 2);
  EXPECT_EQ(block.quants[3], -127);
  EXPECT_EQ(block.quants[4], 0);
  float decoded[32];
  ASSERT_TRUE(decode_row(DType::Q8A, &block, 32, decoded));
  EXPECT_EQ(decoded[0], 254);
  EXPECT_EQ(decoded[1], 4);
}

TEST(BlockFormats, Q8AZeroSubnormalAndNonFinite) {
  float values[32] = {};
  EXPECT_EQ(encode_q8a_block(values).scale, 0);
  values[7] = std::numeric_limits<float>::denorm_min();  // the scale underflows to 0
  EXPECT_EQ(encode_q8a_block(values).scale, 0);
  EXPECT_EQ(encode_q8a_block(values).quants[7], 0);
  values[7] = 180 * std::numeric_limits<float>::denorm_min();  // 180/127 rounds to 1 unit: 180 is clamped
  EXPECT_EQ(encode_q8a_block(values).quants[7], 127);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    values[7] = -bad;
    EXPECT_TRUE(std::isnan(encode_q8a_block(values).scale));
    EXPECT_TRUE(std::isnan(encode_q8a_block(values).sum));
    EXPECT_EQ(encode_q8a_block(values).quants[7], 0);
  }
}

TEST(BlockFormats, NonFiniteWeightsDoNotTrap) {
  float values[32] = {};
  values[3] = std::numeric_limits<float>::infinity();
  values[4] = std::numeric_limits<float>::quiet_NaN();
  values[5] = std::numeric_limits<float>::denorm_min();
  std::uint8_t out[32 * sizeof(double)];  // the widest format
  for (const auto& [name, dtype] : kFormats) EXPECT_TRUE(encode_row(dtype, values, 32, out)) << name;
}

TEST(BlockFormats, TypesWithoutCoderAreRefused) {
  float value = 0;
  const Status status = decode_row(DType::I32, &value, 1, &value);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().fault, Fault::Hone);
  EXPECT_EQ(status.error().message, "type i32 has no decoder");
  EXPECT_FALSE(encode_row(DType::F8E4M3, &value, 1, &value).ok());
}

}  // namespace
}  // namespace hone
