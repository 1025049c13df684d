#include "tensor/panel_layout.h"

#include <cstring>

#include "tensor/block_formats.h"

namespace hone {
namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kScaleBytes = kPanelColumns * 2;  // the f16 scales of one block

std::int64_t align(std::int64_t bytes) {
  return (bytes + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
}

// Where the parts of a packable quantised format lie: in a block of the file and in a panel. A group is four
// bytes of quants. A byte of nibbles holds values j and j + 16 of the block both in the file and in the
// panel, so a group is copied as one word; q8_0 flips the sign bit, which adds 128.
struct QuantFormat {
  bool has_minimum = false;
  std::int64_t groups = 0;       // of one block
  std::int64_t file_quants = 0;  // offset of the quants in a block of the file
  std::uint32_t flip = 0;        // file group xor this = panel group
  std::uint32_t zero = 0;        // the panel group that stands for zeros in the padding
};

QuantFormat quant_format(DType dtype) {
  if (dtype == DType::Q4_0) return {false, 4, 2, 0, 0x88888888u};
  if (dtype == DType::Q4_1) return {true, 4, 4, 0, 0};
  return {false, 8, 2, 0x80808080u, 0x80808080u};
}

constexpr std::int64_t kGroupBytes = 4 * kPanelColumns;  // one group of all columns

// ---- packing: sixteen rows of the file are read side by side, and words of four of them are turned at a
// time

using Words4 = std::uint32_t __attribute__((vector_size(16)));
using Halves8 = std::uint16_t __attribute__((vector_size(16)));

// What of one block each lane has: a row of the file, or for the padding one block again and again.
struct Lanes {
  const std::uint8_t* at[kPanelColumns];
  std::int64_t step[kPanelColumns];  // bytes from block to block
};

Lanes lanes_of(const std::uint8_t* source, std::int64_t rows, std::int64_t row_bytes,
               std::int64_t block_bytes, const std::uint8_t* padding) {
  Lanes lanes{};
  for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) {
    lanes.at[lane] = lane < rows ? source + lane * row_bytes : padding;
    lanes.step[lane] = lane < rows ? block_bytes : 0;
  }
  return lanes;
}

void next_block(Lanes& lanes) {
  for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) lanes.at[lane] += lanes.step[lane];
}

template <class Vector>
Vector load_16_bytes(const std::uint8_t* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Words of the lanes, from byte `begin` of their blocks: word w of all lanes to to + 64 w.
void pack_words(const Lanes& lanes, std::int64_t begin, std::int64_t words, std::uint32_t flip,
                std::uint8_t* to) {
  std::int64_t w = 0;
  for (; w + 4 <= words; w += 4) {
    for (std::int64_t lane = 0; lane < kPanelColumns; lane += 4) {
      Words4 r[4];
      for (std::int64_t i = 0; i < 4; ++i)
        r[i] = load_16_bytes<Words4>(lanes.at[lane + i] + begin + w * 4) ^ flip;
      const Words4 low01 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
      const Words4 high01 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
      const Words4 low23 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
      const Words4 high23 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
      const Words4 turned[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                                __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                                __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                                __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
      for (std::int64_t i = 0; i < 4; ++i)
        std::memcpy(to + (w + i) * kGroupBytes + lane * 4, &turned[i], sizeof(turned[i]));
    }
  }
  for (; w < words; ++w) {
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) {
      std::uint32_t word = 0;
      std::memcpy(&word, lanes.at[lane] + begin + w * 4, 4);
      word ^= flip;
      std::memcpy(to + w * kGroupBytes + lane * 4, &word, 4);
    }
  }
}

// The f16 value at byte `begin` of each lane's block.
void pack_half(const Lanes& lanes, std::int64_t begin, std::uint8_t* to) {
  for (std::int64_t lane = 0; lane < kPanelColumns; ++lane)
    std::memcpy(to + lane * 2, lanes.at[lane] + begin, 2);
}

// Eight elements of 16 bits of the lanes: element i of all lanes to to + 32 i.
void pack_eight_halves(const Lanes& lanes, std::uint8_t* to) {
  for (std::int64_t lane = 0; lane < kPanelColumns; lane += 8) {
    Words4 pairs[8];
    for (std::int64_t i = 0; i < 8; i += 2) {
      const auto first = load_16_bytes<Halves8>(lanes.at[lane + i]);
      const auto second = load_16_bytes<Halves8>(lanes.at[lane + i + 1]);
      pairs[i] = reinterpret_cast<Words4>(__builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11));
      pairs[i + 1] =
          reinterpret_cast<Words4>(__builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15));
    }
    Words4 fours[2][4];  // of lanes 0 to 3 and 4 to 7: elements 2i and 2i + 1
    for (std::int64_t half = 0; half < 2; ++half) {
      for (std::int64_t i = 0; i < 2; ++i) {
        const Words4 first = pairs[half * 4 + i];
        const Words4 second = pairs[half * 4 + 2 + i];
        fours[half][2 * i] = __builtin_shufflevector(first, second, 0, 4, 1, 5);
        fours[half][2 * i + 1] = __builtin_shufflevector(first, second, 2, 6, 3, 7);
      }
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      const Words4 even = __builtin_shufflevector(fours[0][i], fours[1][i], 0, 1, 4, 5);
      const Words4 odd = __builtin_shufflevector(fours[0][i], fours[1][i], 2, 3, 6, 7);
      std::memcpy(to + (2 * i * kPanelColumns + lane) * 2, &even, sizeof(even));
      std::memcpy(to + ((2 * i + 1) * kPanelColumns + lane) * 2, &odd, sizeof(odd));
    }
  }
}

void pack_quantised(DType dtype, const std::uint8_t* source, std::int64_t rows, std::int64_t k,
                    std::uint8_t* panel) {
  const QuantFormat format = quant_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  std::uint8_t padding[34] = {};
  const std::uint32_t zero = format.zero ^ format.flip;
  for (std::int64_t g = 0; g < format.groups; ++g)
    std::memcpy(padding + format.file_quants + g * 4, &zero, 4);
  Lanes lanes = lanes_of(source, rows, dtype_bytes(dtype, k), dtype_row(dtype).block_bytes, padding);
  for (std::int64_t b = 0; b < k / kBlock; ++b) {
    pack_half(lanes, 0, panel + b * kScaleBytes);
    if (format.has_minimum) pack_half(lanes, 2, panel + shape.minima + b * kScaleBytes);
    pack_words(lanes, format.file_quants, format.groups, format.flip,
               panel + shape.quants + b * format.groups * kGroupBytes);
    next_block(lanes);
  }
  // What alignment leaves between the scales and the quants has defined bytes too: packed weights are hashed.
  const std::int64_t scales_end = k / kBlock * kScaleBytes * (format.has_minimum ? 2 : 1);
  std::memset(panel + scales_end, 0, static_cast<std::size_t>(shape.quants - scales_end));
}

void unpack_quantised_column(DType dtype, const std::uint8_t* panel, std::int64_t lane, std::int64_t k,
                             float* out) {
  const QuantFormat format = quant_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  std::uint8_t block[34];  // the block as the file has it, at most q8_0
  for (std::int64_t b = 0; b < k / kBlock; ++b) {
    const std::uint8_t* scale = panel + b * kScaleBytes + lane * 2;
    const std::uint8_t* quants = panel + shape.quants + b * format.groups * kGroupBytes + lane * 4;
    std::memcpy(block, scale, 2);
    if (format.has_minimum) std::memcpy(block + 2, scale + shape.minima, 2);
    for (std::int64_t g = 0; g < format.groups; ++g) {
      std::uint32_t group = 0;
      std::memcpy(&group, quants + g * kGroupBytes, 4);
      group ^= format.flip;
      std::memcpy(block + format.file_quants + g * 4, &group, 4);
    }
    (void)decode_row(dtype, block, kBlock, out + b * kBlock);  // every packable type has a decoder
  }
}

// Where a format with words has its f16 values and its words in a block of the file; words 0: it has none.
struct WordFormat {
  std::int64_t halves = 0;
  std::int64_t half_at[2] = {0, 0};
  std::int64_t words_at = 0;
  std::int64_t words = 0;
};

WordFormat word_format(DType dtype) {
  switch (dtype) {
    case DType::Q2_K:
      return {2, {80, 82}, 0, 20};
    case DType::Q3_K:
      return {1, {108, 0}, 0, 27};
    case DType::Q4_K:
      return {2, {0, 2}, 4, 35};
    case DType::Q5_K:
      return {2, {0, 2}, 4, 43};
    case DType::Q6_K:
      return {1, {208, 0}, 0, 52};
    case DType::Q5_0:
      return {1, {0, 0}, 2, 5};
    case DType::Q5_1:
      return {2, {0, 2}, 4, 5};
    case DType::IQ4_NL:
      return {1, {0, 0}, 2, 4};
    default:
      return {};
  }
}

// Calls move(at, place, bytes) for each part of block `b` of one column: its byte in the block of the file,
// its byte in the panel, its size.
template <class Move>
void for_each_part(const WordFormat& format, const PanelShape& shape, std::int64_t b, std::int64_t lane,
                   Move&& move) {
  for (std::int64_t h = 0; h < format.halves; ++h) {
    move(format.half_at[h], ((b * format.halves + h) * kPanelColumns + lane) * 2, 2);
  }
  for (std::int64_t w = 0; w < format.words; ++w) {
    move(format.words_at + w * 4, shape.quants + ((b * format.words + w) * kPanelColumns + lane) * 4, 4);
  }
}

void pack_format_with_words(DType dtype, const std::uint8_t* source, std::int64_t rows, std::int64_t k,
                            std::uint8_t* panel) {
  const WordFormat format = word_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  const DTypeRow& type = dtype_row(dtype);
  const std::uint8_t padding[256] = {};  // the largest block has 210 bytes
  Lanes lanes = lanes_of(source, rows, dtype_bytes(dtype, k), type.block_bytes, padding);
  const std::int64_t blocks = k / type.block_elements;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (std::int64_t h = 0; h < format.halves; ++h)
      pack_half(lanes, format.half_at[h], panel + (b * format.halves + h) * kScaleBytes);
    pack_words(lanes, format.words_at, format.words, 0,
               panel + shape.quants + b * format.words * kGroupBytes);
    next_block(lanes);
  }
  const std::int64_t halves_end = blocks * format.halves * kScaleBytes;
  std::memset(panel + halves_end, 0, static_cast<std::size_t>(shape.quants - halves_end));
  const std::int64_t words_end = shape.quants + blocks * format.words * kGroupBytes;
  std::memset(panel + words_end, 0, static_cast<std::size_t>(shape.bytes - words_end));
}

void unpack_words_column(DType dtype, const std::uint8_t* panel, std::int64_t lane, std::int64_t k,
                         float* out) {
  const WordFormat format = word_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  const DTypeRow& type = dtype_row(dtype);
  std::uint8_t block[256];  // the largest has 210 bytes
  for (std::int64_t b = 0; b < k / type.block_elements; ++b) {
    for_each_part(format, shape, b, lane, [&](std::int64_t at, std::int64_t place, std::size_t bytes) {
      std::memcpy(block + at, panel + place, bytes);
    });
    (void)decode_row(dtype, block, type.block_elements, out + b * type.block_elements);
  }
}

// Elements of 4 or 2 bytes; 16 bytes of each row at a time, and the rest one by one.
void pack_elements(std::int64_t size, const std::uint8_t* source, std::int64_t rows, std::int64_t k,
                   std::uint8_t* panel) {
  const std::uint8_t padding[16] = {};
  const std::int64_t at_once = 16 / size;
  Lanes lanes = lanes_of(source, rows, k * size, 16, padding);
  std::int64_t i = 0;
  for (; i + at_once <= k; i += at_once) {
    std::uint8_t* to = panel + i * kPanelColumns * size;
    if (size == 4) {
      pack_words(lanes, 0, 4, 0, to);
    } else {
      pack_eight_halves(lanes, to);
    }
    next_block(lanes);
  }
  for (std::int64_t rest = 0; i < k; ++i, ++rest) {
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane)
      std::memcpy(panel + (i * kPanelColumns + lane) * size, lanes.at[lane] + rest * size,
                  static_cast<std::size_t>(size));
  }
}

// Whole blocks, or single elements of a plain type: column `lane` from the contiguous row.
void pack_blocks(DType dtype, const std::uint8_t* row, std::int64_t k, std::int64_t lane,
                 std::uint8_t* panel) {
  const std::int64_t size = dtype_row(dtype).block_bytes;
  for (std::int64_t b = 0; b < k / dtype_row(dtype).block_elements; ++b) {
    std::memcpy(panel + (b * kPanelColumns + lane) * size, row + b * size, static_cast<std::size_t>(size));
  }
}

}  // namespace

bool panel_has_dot_lanes(DType dtype) {
  return dtype == DType::Q4_0 || dtype == DType::Q4_1 || dtype == DType::Q8_0;
}

bool panel_has_dot_numbers(DType dtype) {
  return panel_has_dot_lanes(dtype) || dtype == DType::Q5_0 || dtype == DType::Q5_1 || dtype == DType::Q4_K ||
         dtype == DType::Q5_K || dtype == DType::Q6_K;
}

bool panel_has_words(DType dtype) {
  return word_format(dtype).words > 0;
}

bool panel_supports(DType dtype, std::int64_t k) {
  const DTypeRow& row = dtype_row(dtype);
  return row.is_float && dtype != DType::Q8A && k > 0 && k % row.block_elements == 0;
}

PanelShape panel_shape(DType dtype, std::int64_t k) {
  PanelShape shape;
  if (panel_has_words(dtype)) {
    const WordFormat format = word_format(dtype);
    const std::int64_t blocks = k / dtype_row(dtype).block_elements;
    shape.block_halves = format.halves * kPanelColumns;
    shape.block_words = format.words * kPanelColumns;
    shape.quants = align(blocks * shape.block_halves * 2);
    shape.bytes = align(shape.quants + blocks * shape.block_words * 4);
    return shape;
  }
  if (!panel_has_dot_lanes(dtype)) {
    shape.bytes = align(dtype_bytes(dtype, k * kPanelColumns));
    return shape;
  }
  const QuantFormat format = quant_format(dtype);
  const std::int64_t scales = k / kBlock * kScaleBytes;
  shape.minima = format.has_minimum ? scales : 0;
  shape.quants = align(format.has_minimum ? 2 * scales : scales);
  shape.bytes = align(shape.quants + k / kBlock * format.groups * kGroupBytes);
  return shape;
}

std::int64_t panel_bytes(DType dtype, std::int64_t n, std::int64_t k) {
  return (n + kPanelColumns - 1) / kPanelColumns * panel_shape(dtype, k).bytes;
}

void pack_panel(DType dtype, const void* source, std::int64_t rows, std::int64_t k, void* panel) {
  const auto* from = static_cast<const std::uint8_t*>(source);
  auto* to = static_cast<std::uint8_t*>(panel);
  if (panel_has_dot_lanes(dtype)) return pack_quantised(dtype, from, rows, k, to);
  if (panel_has_words(dtype)) return pack_format_with_words(dtype, from, rows, k, to);
  const PanelShape shape = panel_shape(dtype, k);
  if (dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16) {
    const std::int64_t size = dtype_row(dtype).block_bytes;
    pack_elements(size, from, rows, k, to);
    const std::int64_t end = k * kPanelColumns * size;
    std::memset(to + end, 0, static_cast<std::size_t>(shape.bytes - end));
    return;
  }
  std::memset(to, 0, static_cast<std::size_t>(shape.bytes));
  const std::int64_t row_bytes = dtype_bytes(dtype, k);
  for (std::int64_t lane = 0; lane < rows && lane < kPanelColumns; ++lane)
    pack_blocks(dtype, from + lane * row_bytes, k, lane, to);
}

void unpack_column(DType dtype, const void* packed, std::int64_t n, std::int64_t k, float* out) {
  const std::uint8_t* panel =
      static_cast<const std::uint8_t*>(packed) + n / kPanelColumns * panel_shape(dtype, k).bytes;
  const std::int64_t lane = n % kPanelColumns;
  if (panel_has_dot_lanes(dtype)) return unpack_quantised_column(dtype, panel, lane, k, out);
  if (panel_has_words(dtype)) return unpack_words_column(dtype, panel, lane, k, out);
  const DTypeRow& row = dtype_row(dtype);
  for (std::int64_t b = 0; b < k / row.block_elements; ++b) {
    const std::uint8_t* block = panel + (b * kPanelColumns + lane) * row.block_bytes;
    (void)decode_row(dtype, block, row.block_elements, out + b * row.block_elements);
  }
}

void decode_panel(DType dtype, const void* panel, std::int64_t first, std::int64_t count, float* out) {
  const DTypeRow& row = dtype_row(dtype);
  const std::uint8_t* blocks =
      static_cast<const std::uint8_t*>(panel) + first / row.block_elements * kPanelColumns * row.block_bytes;
  if (!row.is_quantised) {
    (void)decode_row(dtype, blocks, count * kPanelColumns, out);
    return;
  }
  float values[kLargestBlock];
  for (std::int64_t b = 0; b < count / row.block_elements; ++b) {
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) {
      (void)decode_row(dtype, blocks, row.block_elements, values);
      blocks += row.block_bytes;
      float* column = out + b * row.block_elements * kPanelColumns + lane;
      for (std::int64_t i = 0; i < row.block_elements; ++i) column[i * kPanelColumns] = values[i];
    }
  }
}

}  // namespace hone
