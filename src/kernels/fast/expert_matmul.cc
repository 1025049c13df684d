// expert_matmul: x [..,J,K] or [..,1,K], w [X,N,K] in Panel16, experts i32 [..,J] -> f32 [..,J,N].
//
// Each output has the order of additions of the matmul kernel of its types (fast/matmul_float.h,
// fast/matmul_int8.h), so its bits depend neither on which expert the other rows chose nor on how many chose
// the same.
//
// Up to kRowByRow rows: a tile is one row and kPanelsPerTile panels of its expert. More: a tile is one expert
// and kPanelsPerTile of its panels; the rows that chose the expert are copied to scratch, up to kTileRows at
// a time, and multiplied as one block, so that a panel is read once for all of them. A tile whose expert
// nobody chose only looks through the numbers. Where every token has the same experts (the heads of an
// attention), it looks through those of one token.
#include "kernels/fast/axes.h"
#include "kernels/fast/matmul_float.h"
#include "kernels/fast/matmul_int8.h"
#include "kernels/fast/matmul_kernels.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kPanelsPerTile = 4;
constexpr std::int64_t kRowByRow = 16;

struct Sizes {
  std::int64_t rows, chosen;  // rows of the output; J
  std::int64_t experts, n, k;
  std::int64_t out_stride;     // elements
  std::int64_t expert_stride;  // from one token's experts to the next; 0: all have the same
  std::int64_t row_bytes;      // of x
  std::int64_t tiles;          // per row, or per expert
  bool shared, int8;           // x is [..,1,K]
};

Sizes sizes_of(const Call& call) {
  const TensorView& x = call.inputs[0];
  const TensorView& w = call.inputs[1];
  const TensorView& experts = call.inputs[2];
  const TensorView& out = call.outputs[0];
  Sizes s{};
  s.rows = 1;
  for (int axis = 0; axis < experts.rank; ++axis) s.rows *= experts.shape[axis];
  s.chosen = experts.shape[experts.rank - 1];
  s.experts = w.shape[0];
  s.n = w.shape[1];
  s.k = w.shape[2];
  s.expert_stride = experts.rank > 1 ? experts.strides[experts.rank - 2] : s.chosen;
  s.int8 = x.dtype == DType::Q8A;
  s.shared = x.shape[x.rank - 2] == 1 && s.chosen > 1;
  s.out_stride = out.strides[out.rank - 2];
  s.row_bytes = s.int8 ? s.k / 32 * std::int64_t{sizeof(BlockQ8A)} : s.k * 4;
  const std::int64_t panels = (s.n + kPanelColumns - 1) / kPanelColumns;
  s.tiles = (panels + kPanelsPerTile - 1) / kPanelsPerTile;
  return s;
}

std::int64_t tile_count(const Call& call) {
  const Sizes s = sizes_of(call);
  return s.tiles * (s.rows <= kRowByRow ? s.rows : s.experts);
}

std::int64_t scratch_bytes(const Call& call) {
  const Sizes s = sizes_of(call);
  return kSegmentBytes + kPanelsPerTile * kPanelSumsBytes + kTileRows * s.row_bytes;
}

const std::byte* row_of(const Call& call, const Sizes& s, std::int64_t row) {
  const TensorView& view = call.inputs[0];
  std::int64_t index = s.shared ? row / s.chosen : row;
  std::int64_t at = 0;
  for (int axis = view.rank - 2; axis >= 0; --axis) {
    at += index % view.shape[axis] * view.strides[axis];
    index /= view.shape[axis];
  }
  const auto* x = static_cast<const std::byte*>(view.data);
  return x + (s.int8 ? at / 32 * std::int64_t{sizeof(BlockQ8A)} : at * 4);
}

// `count` contiguous rows at `x`, numbered `rows`, by the panels of one tile of `expert`.
void multiply_rows(const Call& call, const Sizes& s, std::int64_t expert, std::int64_t first_panel,
                   const std::byte* x, const std::int64_t* rows, int count) {
  const TensorView& w = call.inputs[1];
  const std::int64_t bytes = panel_shape(w.dtype, s.k).bytes;
  const std::int64_t panels = (s.n + kPanelColumns - 1) / kPanelColumns;
  const auto* matrix = static_cast<const std::byte*>(w.data) + expert * panels * bytes;
  auto* decoded = reinterpret_cast<float*>(call.scratch);
  auto* sums = reinterpret_cast<float*>(call.scratch + kSegmentBytes);
  const std::int64_t here = smaller(kPanelsPerTile, panels - first_panel);
  const std::byte* panel = matrix + first_panel * bytes;
  if (s.int8) {
    matmul_tile_int8_of(w.dtype, reinterpret_cast<const BlockQ8A*>(x), s.k / 32, panel, s.k, count, here,
                        sums);
  } else {
    matmul_tile_float_of(w.dtype, reinterpret_cast<const float*>(x), s.k, panel, s.k, count, here, decoded,
                         sums);
  }
  for (std::int64_t p = 0; p < here; ++p) {
    const std::int64_t column = (first_panel + p) * kPanelColumns;
    const int columns = static_cast<int>(smaller(kPanelColumns, s.n - column));
    auto* out = static_cast<float*>(call.outputs[0].data) + column;
    for (int r = 0; r < count; ++r) {
      store_tile_row(out + rows[r] * s.out_stride, load(sums + (p * kTileRows + r) * 16), columns);
    }
  }
}

void run(const Call& call, std::int64_t tile) {
  const Sizes s = sizes_of(call);
  const std::int32_t* experts = static_cast<const std::int32_t*>(call.inputs[2].data);
  const std::int64_t panel = tile % s.tiles * kPanelsPerTile;
  if (s.rows <= kRowByRow) {
    const std::int64_t row = tile / s.tiles;
    const std::int64_t at = row / s.chosen * s.expert_stride + row % s.chosen;
    multiply_rows(call, s, experts[at], panel, row_of(call, s, row), &row, 1);
    return;
  }
  const std::int64_t expert = tile / s.tiles;
  std::byte* x = call.scratch + kSegmentBytes + kPanelsPerTile * kPanelSumsBytes;
  std::int64_t rows[kTileRows];
  int count = 0;
  std::int64_t begin = 0;
  std::int64_t end = s.chosen;
  if (s.expert_stride == 0) {
    while (begin < end && experts[begin] != expert) ++begin;
    while (begin < end && experts[end - 1] != expert) --end;
  }
  for (std::int64_t first = 0; first < s.rows; first += s.chosen, experts += s.expert_stride) {
    for (std::int64_t j = begin; j < end; ++j) {
      if (experts[j] != expert) continue;
      const std::int64_t row = first + j;
      __builtin_memcpy(x + count * s.row_bytes, row_of(call, s, row), static_cast<std::size_t>(s.row_bytes));
      rows[count++] = row;
      if (count < kTileRows) continue;
      multiply_rows(call, s, expert, panel, x, rows, count);
      count = 0;
    }
  }
  if (count > 0) multiply_rows(call, s, expert, panel, x, rows, count);
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("expert_matmul.q8a.panel16"), "expert_matmul", kThisIsa,
                                false, accepts_expert_matmul_int8, tile_count, run, scratch_bytes},
                               {HONE_KERNEL_NAME("expert_matmul.f32.panel16"), "expert_matmul", kThisIsa,
                                false, accepts_expert_matmul_float, tile_count, run, scratch_bytes}};

}  // namespace

KernelList expert_matmul_kernels() {
  return {kKernels, 2};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
