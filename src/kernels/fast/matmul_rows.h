// How the matmul family cuts its work: a tile is a block of rows by a few panels of 16 output columns. All
// counts come from the shapes alone.
#pragma once

#include "kernels/fast/vec16.h"
#include "kernels/kernel.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Rows of one tile: a multiple of every row count of the inner kernels.
// What tiles of AMX unpack for a block of rows costs them more than it costs the vectors.
inline constexpr int kTileRows = HONE_ISA_LEVEL == 3 ? 256 : 96;

// Panels of one tile: many rows share what is loaded for them; few are bound by reading weights, and more
// tiles are better shared.
inline constexpr std::int64_t kTilePanels = 8;
inline constexpr std::int64_t kFewRows = 8;
HONE_INLINE std::int64_t panels_per_tile(std::int64_t rows) {
  return rows <= kFewRows ? 4 : kTilePanels;
}

// The operands of x [rows,K] * w [N,K]^T as flat matrices; strides in elements.
struct MatmulSizes {
  std::int64_t rows, n, k;
  std::int64_t x_stride, out_stride;
  std::int64_t tiles_across, row_blocks;
};

HONE_INLINE MatmulSizes matmul_sizes(const Call& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& out = call.outputs[0];
  MatmulSizes s{};
  s.rows = 1;
  for (int axis = 0; axis + 1 < x.rank; ++axis) s.rows *= x.shape[axis];
  s.k = call.inputs[1].shape[1];
  s.n = call.inputs[1].shape[0];
  s.x_stride = x.rank > 1 ? x.strides[x.rank - 2] : s.k;
  s.out_stride = out.rank > 1 ? out.strides[out.rank - 2] : s.n;
  const std::int64_t width = panels_per_tile(s.rows) * kPanelColumns;
  s.tiles_across = (s.n + width - 1) / width;
  s.row_blocks = (s.rows + kTileRows - 1) / kTileRows;
  return s;
}

static inline std::int64_t matmul_tile_count(const Call& call) {
  const MatmulSizes s = matmul_sizes(call);
  return s.tiles_across * s.row_blocks;
}

// Columns change fastest: the threads share one block of rows of x, which stays in the cache, and stream the
// weights.
struct MatmulTile {
  std::int64_t first_panel, panels, first_row;
  int rows;
};
HONE_INLINE MatmulTile matmul_tile(const MatmulSizes& s, std::int64_t tile) {
  MatmulTile t{};
  const std::int64_t width = panels_per_tile(s.rows);
  t.first_panel = tile % s.tiles_across * width;
  t.first_row = tile / s.tiles_across * kTileRows;
  const std::int64_t rows = s.rows - t.first_row;
  const std::int64_t panels = (s.n + kPanelColumns - 1) / kPanelColumns - t.first_panel;
  t.rows = static_cast<int>(rows < kTileRows ? rows : kTileRows);
  t.panels = panels < width ? panels : width;
  return t;
}

// The sums of one panel of a tile [kTileRows,16], in scratch.
inline constexpr std::int64_t kPanelSumsBytes = std::int64_t{kTileRows} * 16 * 4;
inline constexpr std::int64_t kTileSumsBytes = kTilePanels * kPanelSumsBytes;

HONE_INLINE void store_tile_row(float* out, Vec16 value, int columns) {
  if (columns == 16) {
    store(out, value);
  } else {
    store_partial(out, value, columns);
  }
}

// Writes sums [panels,kTileRows,16] of tile `t` to the output, each row of a panel as `value` makes it of its
// sums.
template <typename Value>
HONE_INLINE void store_tile(const Call& call, const MatmulSizes& s, const MatmulTile& t, const float* sums,
                            Value value) {
  for (std::int64_t r = 0; r < t.rows; ++r) {
    auto* out = static_cast<float*>(call.outputs[0].data) + (t.first_row + r) * s.out_stride;
    for (std::int64_t p = 0; p < t.panels; ++p) {
      const std::int64_t column = (t.first_panel + p) * kPanelColumns;
      const std::int64_t left = s.n - column;
      store_tile_row(out + column, value(sums + (p * kTileRows + r) * 16),
                     static_cast<int>(left < kPanelColumns ? left : kPanelColumns));
    }
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
