// How the matmul family cuts its work: a tile is one panel of 16 output columns for a block of rows. Both
// counts come from the shapes alone.
#pragma once

#include "kernels/fast/vec16.h"
#include "kernels/kernel.h"
#include "tensor/panel_layout.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

// Rows of one tile: a multiple of every row count of the inner kernels.
inline constexpr int kTileRows = 48;

// The operands of x [rows,K] * w [N,K]^T as flat matrices; strides in elements.
struct MatmulSizes {
  std::int64_t rows, n, k;
  std::int64_t x_stride, out_stride;
  std::int64_t panels, row_blocks;
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
  s.panels = (s.n + kPanelColumns - 1) / kPanelColumns;
  s.row_blocks = (s.rows + kTileRows - 1) / kTileRows;
  return s;
}

static inline std::int64_t matmul_tile_count(const Call& call) {
  const MatmulSizes s = matmul_sizes(call);
  return s.panels * s.row_blocks;
}

// Panels change fastest: the threads share one block of rows of x, which stays in the cache, and stream the
// weights.
struct MatmulTile {
  std::int64_t panel, first_row;
  int rows, columns;
};
HONE_INLINE MatmulTile matmul_tile(const MatmulSizes& s, std::int64_t tile) {
  MatmulTile t{};
  t.panel = tile % s.panels;
  t.first_row = tile / s.panels * kTileRows;
  const std::int64_t rows = s.rows - t.first_row;
  const std::int64_t columns = s.n - t.panel * kPanelColumns;
  t.rows = static_cast<int>(rows < kTileRows ? rows : kTileRows);
  t.columns = static_cast<int>(columns < kPanelColumns ? columns : kPanelColumns);
  return t;
}

// The sums of one tile [kTileRows,16], in scratch.
inline constexpr std::int64_t kTileSumsBytes = std::int64_t{kTileRows} * 16 * 4;

HONE_INLINE void store_tile_row(float* out, Vec16 value, int columns) {
  if (columns == 16) {
    store(out, value);
  } else {
    store_partial(out, value, columns);
  }
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
