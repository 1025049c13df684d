// Weights of every format, also of those that have no encoder.
#pragma once

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <vector>

#include "tensor/block_formats.h"

namespace hone::test {

// Every float type of a file, block-quantised ones included.
inline std::span<const DType> weight_types() {
  static const std::vector<DType> types = [] {
    std::vector<DType> all;
    for (int i = 0; i < static_cast<int>(DType::Count); ++i) {
      const auto dtype = static_cast<DType>(i);
      if (dtype_row(dtype).is_float && dtype != DType::Q8A) all.push_back(dtype);
    }
    return all;
  }();
  return types;
}

// Bytes that decode to numbers of a common size, block by block: not every format has an encoder, and one
// huge block would hide an error in the others.
inline std::vector<std::byte> random_blocks(DType dtype, std::int64_t count, std::mt19937_64& random) {
  const DTypeRow& row = dtype_row(dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(dtype_bytes(dtype, count)));
  float values[kLargestBlock];
  for (std::int64_t block = 0; block < count / row.block_elements; ++block) {
    std::byte* at = bytes.data() + block * row.block_bytes;
    float largest = 0;
    while (!(largest > 0.01F && largest < 10.0F)) {
      for (std::int64_t i = 0; i < row.block_bytes; ++i) at[i] = static_cast<std::byte>(random());
      EXPECT_TRUE(decode_row(dtype, at, row.block_elements, values).ok());
      largest = 0;
      for (std::int64_t i = 0; i < row.block_elements; ++i) {
        const float size = std::fabs(values[i]);
        if (!(size <= largest)) largest = size;  // a NaN as well
        if (std::isnan(largest)) break;
      }
    }
  }
  return bytes;
}

}  // namespace hone::test
