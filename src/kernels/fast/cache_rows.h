// Right operands of row_block.h:multiply that ask memory for the next tile of the cache while this one is
// multiplied. One head's part of a key is a line or a few, a row of all heads apart, which no prefetcher of
// the hardware follows; and a core has some two dozen misses under way at a time, so what is asked for at
// once waits in line. Here a product of kRows rows and two groups of columns asks for one line a step: the
// lines of the next tile are as many as the steps of this one.
#pragma once

#include <cstdint>

#include "kernels/fast/block_load.h"
#include "kernels/fast/row_block.h"
#include "tensor/dtype.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Elements 32 * part .. of a row; a block of q8_0 may lie in two lines, whose first is that of the block
// before.
template <DType kType>
HONE_INLINE void fetch_part(const char* row, std::int64_t part) {
  const char* from = row + source_bytes(kType, 32 * part);
  __builtin_prefetch(kType == DType::Q8_0 && part > 0 ? from + 33 : from);
  if constexpr (kType == DType::F32) __builtin_prefetch(from + 64);
}

// A tile of values as it lies in the cache: rows of at least 16 * groups elements from `column` on, a
// multiple of 32. Read once, it needs no copy in f32. `ahead` bytes behind each row lies that of the next
// tile.
template <DType kType>
struct ValueColumns {
  const char* data = nullptr;
  std::int64_t row = 0;  // bytes
  std::int64_t column = 0;
  std::int64_t ahead = 0;
};

template <DType kType>
HONE_INLINE Vec16 columns_at(const ValueColumns<kType>& b, std::int64_t i, int group) {
  const char* row = b.data + i * b.row;
  if (group % 2 == 0) fetch_part<kType>(row + b.ahead, b.column / 32 + group / 2);
  return sixteen_of<kType>(row, b.column + 16 * group);
}

// Transposed keys in f32 (block_load.h:load_transposed), from one of them on. `next` is the row, in the next
// tile, of the key in the first column; over 32 rows i of the operand the parts i / 32 of 32 keys are asked
// for.
template <DType kType>
struct KeyColumns {
  const float* data = nullptr;
  const char* next = nullptr;
  std::int64_t next_row = 0;  // bytes
};

template <DType kType>
HONE_INLINE Vec16 columns_at(const KeyColumns<kType>& b, std::int64_t i, int group) {
  if (group % 2 == 0) fetch_part<kType>(b.next + (16 * group + i % 32) * b.next_row, i / 32);
  return load(b.data + i * kBlockWidth + 16 * group);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
