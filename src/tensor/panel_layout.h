// Layout::Panel16: a weight matrix W [N,K] packed so that one SIMD lane is one output column.
//
// Panel p holds columns n = 16p .. 16p+15 (rows of W; N is padded with zeros). Each panel starts at a
// multiple of 64 bytes. With lane l = n - 16p:
//
//   f64 .. f8        element (k, l) at index k*16 + l
//   q4_0, q4_1, q8_0 block b = k/32:
//     scales  f16 at (b*16 + l) * 2 bytes from the panel's start
//     minima  (q4_1 only) f16, the same way, after all scales
//     quants  from the next multiple of 64 bytes on, 64 bytes per group of four k:
//       q8_0   8 groups a block, group g = (k%32)/4; byte b*512 + g*64 + l*4 + k%4 holds quant + 128 as u8
//       q4_0, q4_1   4 pairs of groups a block; byte b*256 + g*64 + l*4 + k%4 holds group g in its low nibble
//       and
//                    group g + 4 in its high nibble (g = 0..3), unsigned as in the file
//
//   q2_k .. q6_k, q5_0, q5_1, iq4_nl: of each block, its f16 values, then its other bytes as words of four
//     halves  f16 h of block b at ((b*H + h)*16 + l) * 2 bytes from the panel's start, H of them a block
//     words   from the next multiple of 64 bytes on, word w of block b at ((b*W + w)*16 + l) * 4
//   other block-quantised types: the blocks of the file, block b of lane l at index b*16 + l
//
// A four-byte lane is what a u8 x i8 dot instruction (VPDPBUSD) takes; scales apart from quants keep the
// quants aligned to cache lines. The bytes are those of the unpacked matrix, up to the padding.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace hone {

inline constexpr std::int64_t kPanelColumns = 16;
inline constexpr std::int64_t kPanelAlignment = 64;

// q4_0, q4_1, q8_0: quants in four-byte lanes, which an int8 kernel reads.
bool panel_has_dot_lanes(DType dtype);

// q2_k .. q6_k, q5_0, q5_1, iq4_nl: words that a kernel decodes a column a lane
// (kernels/fast/decode_words.h).
bool panel_has_words(DType dtype);

// Types that an int8 kernel reads in their panels, all in parts of a block of 32 (kernels/fast/dot_format.h).
bool panel_has_dot_numbers(DType dtype);

// True if matrices of `dtype` with rows of K values can be packed.
bool panel_supports(DType dtype, std::int64_t k);

// Where the parts of one panel lie, in bytes from its start, for rows of K values.
struct PanelShape {
  std::int64_t minima = 0;  // start of the minima (q4_1)
  std::int64_t quants = 0;  // start of the quants or elements
  std::int64_t bytes = 0;   // of the whole panel
  // Of the types with words: f16 values and four-byte words of one block of all columns; 0 of the others.
  std::int64_t block_halves = 0;
  std::int64_t block_words = 0;
};
PanelShape panel_shape(DType dtype, std::int64_t k);

// Bytes of the packed matrix: ceil(N/16) panels.
std::int64_t panel_bytes(DType dtype, std::int64_t n, std::int64_t k);

// The f32 values of rows [first, first + count) of K of one panel: out [count,16]. first and count are whole
// blocks. For the plain types and those whose
// blocks stay as in the file.
void decode_panel(DType dtype, const void* panel, std::int64_t first, std::int64_t count, float* out);

// Packs up to 16 rows of W (`rows` of them, contiguous in file layout at `source`) into the panel at `panel`.
void pack_panel(DType dtype, const void* source, std::int64_t rows, std::int64_t k, void* panel);

// The f32 values of column n of a packed matrix: out [K].
void unpack_column(DType dtype, const void* packed, std::int64_t n, std::int64_t k, float* out);

}  // namespace hone
