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

const std::pair<const char*, DType> kDecodedOnly[] = {
    {"Q2_K", DType::Q2_K},     {"Q3_K", DType::Q3_K},       {"Q4_K", DType::Q4_K},
    {"Q5_K", DType::Q5_K},     {"Q6_K", DType::Q6_K},       {"IQ1_S", DType::IQ1_S},
    {"IQ1_M", DType::IQ1_M},   {"IQ2_XXS", DType::IQ2_XXS}, {"IQ2_XS", DType::IQ2_XS},
    {"IQ2_S", DType::IQ2_S},   {"IQ3_XXS", DType::IQ3_XXS}, {"IQ3_S", DType::IQ3_S},
    {"IQ4_NL", DType::IQ4_NL}, {"IQ4_XS", DType::IQ4_XS},   {"TQ1_0", DType::TQ1_0},
    {"TQ2_0", DType::TQ2_0},   {"MXFP4", DType::MXFP4},     {"NVFP4", DType::NVFP4}};

TEST(BlockFormats, DecodesEveryOtherFormatBitForBit) {
  for (const auto& [name, dtype] : kDecodedOnly) {
    auto tensors = read_tensors(std::string("dequant/") + name);
    const std::vector<float> expected = as_floats(tensors["values"]);
    ASSERT_GE(expected.size(), 384u) << name;
    std::vector<float> actual(expected.size());
    ASSERT_EQ(tensors["blocks"].size(),
              static_cast<std::size_t>(dtype_bytes(dtype, static_cast<std::int64_t>(actual.size()))));
    ASSERT_TRUE(
        decode_row(dtype, tensors["blocks"].data(), static_cast<std::int64_t>(actual.size()), actual.data()));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      wrong += std::bit_cast<std::uint32_t>(actual[i]) != std::bit_cast<std::uint32_t>(expected[i]);
    }
    EXPECT_EQ(wrong, 0U) << name;
  }
}

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
  EXPECT_EQ(block.sum, 8);  // scale * sum of quants, not the 8.5 of the unrounded values
  EXPECT_EQ(block.offset, -128 * (127 + 2 + 2 - 127));
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

// Values of a bell curve, as weights have; sums of uniform numbers.
std::vector<float> bell_curve(std::size_t count) {
  std::vector<float> out(count);
  std::uint64_t state = 88172645463325252u;
  for (float& value : out) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      sum += static_cast<double>(state >> 11) * 0x1p-53;
    }
    value = static_cast<float>((sum - 6.0) * 0.02);
  }
  return out;
}

double relative_error(DType dtype, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<std::uint8_t> blocks(static_cast<std::size_t>(dtype_bytes(dtype, count)), 0xcd);
  EXPECT_TRUE(encode_row(dtype, values.data(), count, blocks.data()));
  std::vector<float> back(values.size());
  EXPECT_TRUE(decode_row(dtype, blocks.data(), count, back.data()));
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(back[i]) - static_cast<double>(values[i]), 2);
    norm += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / norm);
}

// Of a uniform quantiser with 2^b levels over +-3 standard deviations the error is 6/2^b/sqrt(12) of one:
// 0.108 for 4 bits. A search does better, and a finer format better than a coarser one.
TEST(BlockFormats, SearchedBlocksAreNearTheirSource) {
  const std::vector<float> values = bell_curve(8192);
  EXPECT_LT(relative_error(DType::Q4_K, values), 0.070);
  EXPECT_LT(relative_error(DType::IQ4_NL, values), 0.075);
  EXPECT_LT(relative_error(DType::Q5_K, values), 0.036);
  EXPECT_LT(relative_error(DType::Q6_K, values), 0.018);
  EXPECT_LT(relative_error(DType::Q4_K, values), relative_error(DType::Q4_1, values) * 0.92);
  EXPECT_LT(relative_error(DType::IQ4_NL, values), relative_error(DType::Q4_0, values) * 0.92);
}

// Values that a format can hold come back exactly.
TEST(BlockFormats, SearchedBlocksMeetWhatIsOnTheirGrid) {
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 16) - 4) * 0.5f;
  }
  EXPECT_LT(relative_error(DType::Q4_K, values), 1e-3);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i % 16 * 4) - 32) * 0.25f;  // -32 in every part
  }
  EXPECT_LT(relative_error(DType::Q6_K, values), 1e-3);
}

TEST(BlockFormats, SearchedBlocksOfZerosAndOfNothingFinite) {
  for (const DType dtype : {DType::Q4_K, DType::Q5_K, DType::Q6_K, DType::IQ4_NL}) {
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<float> values(256, 0.0f);
    std::vector<std::uint8_t> block(static_cast<std::size_t>(dtype_bytes(dtype, 256)));
    ASSERT_TRUE(encode_row(dtype, values.data(), 256, block.data()));
    std::vector<float> back(256, 1.0f);
    ASSERT_TRUE(decode_row(dtype, block.data(), 256, back.data()));
    for (const float value : back) EXPECT_EQ(value, 0.0f);
    for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 3e38f, 1e-45f}) {
      values.assign(256, 0.5f);
      values[7] = bad;
      values[200] = -bad;
      ASSERT_TRUE(encode_row(dtype, values.data(), 256, block.data()));
    }
  }
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
