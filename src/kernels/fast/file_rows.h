// Weights that run from the mapped file: rows [N,K] in file order (Layout::Strided) instead of panels. The
// rows of a panel are laid out as tensor/panel_layout.h says into scratch, and the kernel of panels goes on
// from there, so the bits are those of packed weights.
//
// Laying out moves four bytes at a time, 136 of them in a block of 16 x 32 weights of q8_0, by loads and
// stores of their own: decoding from the file reached about half the rate of packed weights (SmolLM2,
// contended, 15 to 20 tokens a second against 33 to 35).
#pragma once

#include "kernels/fast/vec16.h"
#include "tensor/dtype.h"
#include "tensor/panel_layout.h"
#include "tensor/view.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Panels that are laid out at a time: as many as the inner kernels take together.
inline constexpr std::int64_t kLaidOutPanels = 2;

// Scratch of these panels of `w`; 0 where it lies in panels.
HONE_INLINE std::int64_t file_rows_scratch(const TensorView& w) {
  return w.layout == Layout::Panel16 ? 0 : kLaidOutPanels * panel_shape(w.dtype, w.shape[1]).bytes;
}

HONE_INLINE std::uint32_t load_word(const std::byte* from) {
  std::uint32_t word = 0;
  __builtin_memcpy(&word, from, 4);
  return word;
}
HONE_INLINE std::uint16_t load_half(const std::byte* from) {
  std::uint16_t half = 0;
  __builtin_memcpy(&half, from, 2);
  return half;
}

// Blocks of 32 with an f16 scale, q4_1 with a minimum behind it, and kWords words of quants.
template <DType kWeight>
static void lay_out_blocks(const std::byte* rows, std::int64_t row_bytes, std::int64_t k, std::byte* panel) {
  constexpr int kHalves = kWeight == DType::Q4_1 ? 2 : 1;
  constexpr int kWords = kWeight == DType::Q8_0 ? 8 : 4;
  constexpr std::uint32_t kOffset = kWeight == DType::Q8_0 ? 0x80808080U : 0U;  // quant + 128
  constexpr std::int64_t kBlockBytes = kHalves * 2 + kWords * 4;
  const PanelShape shape = panel_shape(kWeight, k);
  auto* scales = reinterpret_cast<std::uint16_t*>(panel);
  auto* minima = reinterpret_cast<std::uint16_t*>(panel + shape.minima);
  auto* words = reinterpret_cast<std::uint32_t*>(panel + shape.quants);
  for (std::int64_t b = 0; b < k / 32; ++b) {
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane) {
      const std::byte* block = rows + lane * row_bytes + b * kBlockBytes;
      scales[b * 16 + lane] = load_half(block);
      if constexpr (kHalves == 2) minima[b * 16 + lane] = load_half(block + 2);
#pragma GCC unroll 8
      for (std::int64_t w = 0; w < kWords; ++w)
        words[(b * kWords + w) * 16 + lane] = load_word(block + kHalves * 2 + w * 4) ^ kOffset;
    }
  }
}

template <class Element>
static void lay_out_elements(const std::byte* rows, std::int64_t row_bytes, std::int64_t k,
                             std::byte* panel) {
  auto* to = reinterpret_cast<Element*>(panel);
  for (std::int64_t i = 0; i < k; ++i) {
#pragma GCC unroll 16
    for (std::int64_t lane = 0; lane < kPanelColumns; ++lane)
      __builtin_memcpy(to + i * 16 + lane, rows + lane * row_bytes + i * std::int64_t{sizeof(Element)},
                       sizeof(Element));
  }
}

// Panel `index` of the rows of `w`, at `panel`.
static inline void lay_out_panel(const TensorView& w, std::int64_t index, std::byte* panel) {
  const std::int64_t k = w.shape[1];
  const std::int64_t row_bytes = dtype_bytes(w.dtype, k);
  const std::byte* rows = static_cast<const std::byte*>(w.data) + index * kPanelColumns * row_bytes;
  const std::int64_t left = w.shape[0] - index * kPanelColumns;
  if (left < kPanelColumns) return pack_panel(w.dtype, rows, left, k, panel);
  switch (w.dtype) {
    case DType::Q8_0:
      lay_out_blocks<DType::Q8_0>(rows, row_bytes, k, panel);
      break;
    case DType::Q4_0:
      lay_out_blocks<DType::Q4_0>(rows, row_bytes, k, panel);
      break;
    case DType::Q4_1:
      lay_out_blocks<DType::Q4_1>(rows, row_bytes, k, panel);
      break;
    case DType::F16:
    case DType::BF16:
      lay_out_elements<std::uint16_t>(rows, row_bytes, k, panel);
      break;
    case DType::F32:
      lay_out_elements<std::uint32_t>(rows, row_bytes, k, panel);
      break;
    default:
      pack_panel(w.dtype, rows, kPanelColumns, k, panel);
  }
}

// Calls multiply(panel, p, n) for panels first .. first + count of `w`, those at p .. p + n of them at
// `panel`, all at once where they lie in panels, and as they are laid out at `scratch` otherwise.
template <class Multiply>
HONE_INLINE void for_panels(const TensorView& w, std::int64_t first, std::int64_t count, std::byte* scratch,
                            const Multiply& multiply) {
  const std::int64_t bytes = panel_shape(w.dtype, w.shape[1]).bytes;
  if (w.layout == Layout::Panel16)
    return multiply(static_cast<const std::byte*>(w.data) + first * bytes, 0, count);
  for (std::int64_t p = 0; p < count; p += kLaidOutPanels) {
    const std::int64_t n = count - p < kLaidOutPanels ? count - p : kLaidOutPanels;
    for (std::int64_t i = 0; i < n; ++i) lay_out_panel(w, first + p + i, scratch + i * bytes);
    multiply(static_cast<const std::byte*>(scratch), p, n);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
