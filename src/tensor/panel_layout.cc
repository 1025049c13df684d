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

// Packs column `lane` of one panel; a null `row` packs padding.
void pack_quantised_column(DType dtype, const std::uint8_t* row, std::int64_t k, std::int64_t lane,
                           std::uint8_t* panel) {
  const QuantFormat format = quant_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  const std::int64_t block_bytes = dtype_row(dtype).block_bytes;
  for (std::int64_t b = 0; b < k / kBlock; ++b) {
    std::uint8_t padding[34] = {};
    const std::uint8_t* block = row == nullptr ? padding : row + b * block_bytes;
    std::uint8_t* scale = panel + b * kScaleBytes + lane * 2;
    std::uint8_t* quants = panel + shape.quants + b * format.groups * kGroupBytes + lane * 4;
    std::memcpy(scale, block, 2);
    if (format.has_minimum) std::memcpy(scale + shape.minima, block + 2, 2);
    for (std::int64_t g = 0; g < format.groups; ++g) {
      std::uint32_t group = 0;
      std::memcpy(&group, block + format.file_quants + g * 4, 4);
      group = row == nullptr ? format.zero : group ^ format.flip;
      std::memcpy(quants + g * kGroupBytes, &group, 4);
    }
  }
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

void pack_words_column(DType dtype, const std::uint8_t* row, std::int64_t k, std::int64_t lane,
                       std::uint8_t* panel) {
  const WordFormat format = word_format(dtype);
  const PanelShape shape = panel_shape(dtype, k);
  const DTypeRow& type = dtype_row(dtype);
  for (std::int64_t b = 0; b < k / type.block_elements; ++b) {
    const std::uint8_t* block = row + b * type.block_bytes;
    for_each_part(format, shape, b, lane, [&](std::int64_t at, std::int64_t place, std::size_t bytes) {
      std::memcpy(panel + place, block + at, bytes);
    });
  }
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

// Elements of `Size` bytes: column `lane` from the contiguous row of K elements.
template <std::size_t Size>
void pack_column(const std::uint8_t* row, std::int64_t k, std::int64_t lane, std::uint8_t* panel) {
  constexpr auto kSize = static_cast<std::int64_t>(Size);
  for (std::int64_t i = 0; i < k; ++i)
    std::memcpy(panel + (i * kPanelColumns + lane) * kSize, row + i * kSize, Size);
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
  const std::int64_t row_bytes = dtype_bytes(dtype, k);
  const PanelShape shape = panel_shape(dtype, k);
  if (panel_has_dot_lanes(dtype)) {
    // What alignment leaves between the scales and the quants has defined bytes too: packed weights are
    // hashed.
    const std::int64_t scales_end = k / kBlock * kScaleBytes * (quant_format(dtype).has_minimum ? 2 : 1);
    std::memset(to + scales_end, 0, static_cast<std::size_t>(shape.quants - scales_end));
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) {
      pack_quantised_column(dtype, lane < rows ? from + lane * row_bytes : nullptr, k, lane, to);
    }
    return;
  }
  std::memset(to, 0, static_cast<std::size_t>(shape.bytes));
  for (std::int64_t lane = 0; lane < rows && lane < kPanelColumns; ++lane) {
    const std::uint8_t* row = from + lane * row_bytes;
    switch (dtype) {
      case DType::F32:
        pack_column<4>(row, k, lane, to);
        break;
      case DType::F16:
      case DType::BF16:
        pack_column<2>(row, k, lane, to);
        break;
      default:
        if (panel_has_words(dtype)) {
          pack_words_column(dtype, row, k, lane, to);
        } else {
          pack_blocks(dtype, row, k, lane, to);
        }
    }
  }
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
