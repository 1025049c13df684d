#include "tensor/panel_layout.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "tensor/block_formats.h"

namespace hone {
namespace {

const DType kPackable[] = {DType::F32, DType::F16, DType::BF16, DType::Q4_0, DType::Q4_1, DType::Q8_0};

// A matrix [N,K] in file layout, of values that differ everywhere.
std::vector<std::uint8_t> make_matrix(DType dtype, std::int64_t n, std::int64_t k) {
  std::vector<float> row(static_cast<std::size_t>(k));
  std::vector<std::uint8_t> out(static_cast<std::size_t>(dtype_bytes(dtype, n * k)));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      const std::uint32_t hash = static_cast<std::uint32_t>(i * 7919 + j * 104729 + 12345) * 2654435761u;
      row[static_cast<std::size_t>(j)] = static_cast<float>(hash >> 8) / 8388608.0f - 1.0f;
    }
    EXPECT_TRUE(encode_row(dtype, row.data(), k, out.data() + dtype_bytes(dtype, i * k)));
  }
  return out;
}

std::vector<std::uint8_t> pack(DType dtype, const std::vector<std::uint8_t>& matrix, std::int64_t n,
                               std::int64_t k) {
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(panel_bytes(dtype, n, k)), 0xcd);
  for (std::int64_t first = 0; first < n; first += kPanelColumns) {
    const std::int64_t rows = n - first < kPanelColumns ? n - first : kPanelColumns;
    pack_panel(dtype, matrix.data() + dtype_bytes(dtype, first * k), rows, k,
               packed.data() + first / kPanelColumns * panel_shape(dtype, k).bytes);
  }
  return packed;
}

// Every type a file can hold, of arbitrary bytes: the panel holds the blocks of the rows, in whatever order.
TEST(PanelLayout, EveryFloatTypeComesBack) {
  for (int t = 0; t < static_cast<int>(DType::Q8A); ++t) {
    const auto dtype = static_cast<DType>(t);
    const DTypeRow& row = dtype_row(dtype);
    if (!row.is_float) continue;
    SCOPED_TRACE(row.name);
    const std::int64_t k = 2 * row.block_elements;
    const std::int64_t n = 19;
    ASSERT_TRUE(panel_supports(dtype, k));
    std::vector<std::uint8_t> matrix(static_cast<std::size_t>(dtype_bytes(dtype, n * k)));
    std::uint32_t state = 1;
    for (std::uint8_t& byte : matrix) byte = static_cast<std::uint8_t>((state = state * 1664525u + 1u) >> 24);
    const std::vector<std::uint8_t> packed = pack(dtype, matrix, n, k);
    std::vector<float> expected(static_cast<std::size_t>(k));
    std::vector<float> actual(static_cast<std::size_t>(k));
    std::vector<float> panel(static_cast<std::size_t>(k * kPanelColumns));
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_TRUE(decode_row(dtype, matrix.data() + dtype_bytes(dtype, i * k), k, expected.data()));
      unpack_column(dtype, packed.data(), i, k, actual.data());
      EXPECT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * 4), 0) << "column " << i;
      if (panel_has_dot_lanes(dtype) || panel_has_words(dtype)) continue;
      // The second block alone, and then the first.
      const std::int64_t block = row.block_elements;
      const std::uint8_t* at = packed.data() + i / kPanelColumns * panel_shape(dtype, k).bytes;
      decode_panel(dtype, at, block, block, panel.data() + block * kPanelColumns);
      decode_panel(dtype, at, 0, block, panel.data());
      for (std::int64_t j = 0; j < k; ++j) {
        actual[static_cast<std::size_t>(j)] =
            panel[static_cast<std::size_t>(j * kPanelColumns + i % kPanelColumns)];
      }
      EXPECT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * 4), 0) << "column " << i;
    }
  }
}

TEST(PanelLayout, UnpackGivesWhatDecodeGives) {
  for (const DType dtype : kPackable) {
    const bool quantised = dtype_row(dtype).is_quantised;
    for (const std::int64_t n : {1, 15, 16, 17, 35}) {
      for (const std::int64_t k :
           quantised ? std::vector<std::int64_t>{32, 96} : std::vector<std::int64_t>{1, 7, 40}) {
        const std::vector<std::uint8_t> matrix = make_matrix(dtype, n, k);
        const std::vector<std::uint8_t> packed = pack(dtype, matrix, n, k);
        std::vector<float> expected(static_cast<std::size_t>(k));
        std::vector<float> actual(static_cast<std::size_t>(k));
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_TRUE(decode_row(dtype, matrix.data() + dtype_bytes(dtype, i * k), k, expected.data()));
          unpack_column(dtype, packed.data(), i, k, actual.data());
          ASSERT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * 4), 0)
              << dtype_name(dtype) << " n " << n << " k " << k << " column " << i;
        }
      }
    }
  }
}

// What lies behind the last column decodes to zeros, and no byte is left undefined.
TEST(PanelLayout, PaddingIsZeroAndEveryByteIsWritten) {
  for (const DType dtype : kPackable) {
    const std::int64_t k = 32;
    const std::vector<std::uint8_t> matrix = make_matrix(dtype, 3, k);
    const std::int64_t bytes = panel_shape(dtype, k).bytes;
    std::vector<std::uint8_t> first(static_cast<std::size_t>(bytes), 0xcd);
    std::vector<std::uint8_t> second(static_cast<std::size_t>(bytes), 0x32);
    pack_panel(dtype, matrix.data(), 3, k, first.data());
    pack_panel(dtype, matrix.data(), 3, k, second.data());
    EXPECT_EQ(first, second) << dtype_name(dtype);
    for (std::int64_t column = 3; column < kPanelColumns; ++column) {
      float values[32];
      unpack_column(dtype, first.data(), column, k, values);
      for (const float value : values)
        EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0u) << dtype_name(dtype);
    }
  }
}

TEST(PanelLayout, PlacesAreAsDocumented) {
  const std::int64_t k = 64;
  {
    const std::vector<std::uint8_t> matrix = make_matrix(DType::Q8_0, 16, k);
    const std::vector<std::uint8_t> packed = pack(DType::Q8_0, matrix, 16, k);
    const PanelShape shape = panel_shape(DType::Q8_0, k);
    EXPECT_EQ(shape.quants, 64);
    EXPECT_EQ(shape.bytes, 64 + 2 * 512);
    // Row 5, value 32 + 13: block 1, group 3, byte 1 of the lane.
    const std::uint8_t quant = matrix[(5 * 2 + 1) * 34 + 2 + 13];
    EXPECT_EQ(packed[64 + 512 + 3 * 64 + 5 * 4 + 1], static_cast<std::uint8_t>(quant + 128));
    EXPECT_EQ(packed[(16 + 5) * 2], matrix[(5 * 2 + 1) * 34]);
  }
  {
    const std::vector<std::uint8_t> matrix = make_matrix(DType::Q4_1, 16, 96);
    const std::vector<std::uint8_t> packed = pack(DType::Q4_1, matrix, 16, 96);
    const PanelShape shape = panel_shape(DType::Q4_1, 96);
    EXPECT_EQ(shape.minima, 96);
    EXPECT_EQ(shape.quants, 192);
    EXPECT_EQ(shape.bytes, 192 + 3 * 256);
    // Row 9, block 2: value 6 in the low nibble of group 1, value 22 in the high nibble of the same byte.
    const std::uint8_t* block = matrix.data() + (9 * 3 + 2) * 20;
    EXPECT_EQ(packed[static_cast<std::size_t>(192 + 2 * 256 + 64 + 9 * 4 + 2)], block[4 + 6]);
    EXPECT_EQ(packed[96 + (2 * 16 + 9) * 2 + 1], block[3]);
  }
  EXPECT_EQ(panel_shape(DType::F16, 3).bytes, 128);  // 96 rounded up to a cache line
  EXPECT_EQ(panel_bytes(DType::F32, 17, 2), 256);
}

TEST(PanelLayout, SupportedTypesAndLengths) {
  EXPECT_TRUE(panel_supports(DType::F16, 7));
  EXPECT_TRUE(panel_supports(DType::Q4_0, 64));
  EXPECT_FALSE(panel_supports(DType::Q4_0, 48));
  EXPECT_TRUE(panel_supports(DType::Q4_K, 512));
  EXPECT_FALSE(panel_supports(DType::Q4_K, 128));
  EXPECT_FALSE(panel_supports(DType::Q8A, 64));
  EXPECT_FALSE(panel_supports(DType::I32, 64));
}

}  // namespace
}  // namespace hone
