// projection(x, ..) {sections}: matmuls of one x by several weights in one launch, each with what follows it
// on its own columns; tensor/projection.h says what. Each product has the order of additions of its matmul
// kernel and each operation after it that of its own kernel, so without a folded norm the bits are those of
// the launches it replaces.
//
// A folded norm's factor is, per row, r = f32(1 / sqrt(sum(row_sums) / K + eps)): the sums of 32 squares are
// added 16 lanes at a time, in order, and folded as by sum(Vec16); the quotient and the root are f64.
//
// A tile is a block of rows by one head, where there is a rope, and else by kWide columns; by kNarrow where
// there are so few rows that a step is bound by reading weights, and more tiles are better shared. No row's
// bits depend on that.
#include "kernels/fast/file_rows.h"
#include "kernels/fast/matmul_bf16.h"
#include "kernels/fast/matmul_float.h"
#include "kernels/fast/matmul_int8.h"
#include "kernels/fast/matmul_kernels.h"
#include "kernels/fast/projection_epilogue.h"
#include "kernels/matmul_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kWide = 128;
constexpr std::int64_t kNarrow = 64;
// One row's factor per row of the tile, behind the segment that the float kernels decode to.
constexpr std::int64_t kFactorBytes = std::int64_t{kTileRows} * 4;

std::int64_t tile_columns(const ProjectionSection& section, std::int64_t rows) {
  if (section.cosine >= 0) return section.head;
  return rows <= kFewRows ? kNarrow : kWide;
}

std::int64_t row_blocks(std::int64_t rows) {
  return blocks_of(rows, kTileRows);
}

std::int64_t tile_count(const Call& call) {
  std::int64_t columns = 0;
  const Sections sections = sections_of(call);
  const std::int64_t rows = projection_rows(call);
  for (std::int64_t i = 0; i < sections.count; ++i) {
    const ProjectionSection section = section_at(sections, i);
    columns += blocks_of(call.inputs[section.weight].shape[0], tile_columns(section, rows));
  }
  return columns * row_blocks(rows);
}

// Of the largest panels that are laid out in scratch: the last part of it.
std::int64_t laid_out_bytes(const Call& call) {
  const Sections sections = sections_of(call);
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < sections.count; ++i) {
    const ProjectionSection section = section_at(sections, i);
    for (const std::int64_t input : {section.weight, section.gate}) {
      if (input < 0) continue;
      const std::int64_t bytes = file_rows_scratch(call.inputs[input]);
      if (bytes > most) most = bytes;
    }
  }
  return most;
}

// Sums of `panels` panels, each [kTileRows,16].
std::int64_t scratch_bytes(const Call& call) {
  const Sections sections = sections_of(call);
  std::int64_t panels = kWide / kPanelColumns;
  bool gated = false;
  for (std::int64_t i = 0; i < sections.count; ++i) {
    const ProjectionSection section = section_at(sections, i);
    if (section.cosine >= 0 && section.head / kPanelColumns > panels) panels = section.head / kPanelColumns;
    gated = gated || section.gate >= 0;
  }
  return kSegmentBytes + kFactorBytes + (gated ? 2 : 1) * panels * kPanelSumsBytes +
         (terms_of(call) == 2 ? kDotPanels * kPanelSumsBytes : 0) + laid_out_bytes(call);
}

// The sums of rows with two terms each: those of both, added. `pairs` has room for the sums of kDotPanels
// panels.
void multiply_pairs(DType weight, const BlockQ8A* x, std::int64_t x_stride, const std::byte* panel,
                    std::int64_t k, int rows, std::int64_t panels, float* pairs, float* sums) {
  constexpr int kPairs = kTileRows / 2;
  for (int first = 0; first < rows; first += kPairs) {
    const int count = rows - first < kPairs ? rows - first : kPairs;
    matmul_tile_int8_of(weight, x + 2 * first * x_stride, x_stride, panel, k, 2 * count, panels, pairs);
    for (std::int64_t p = 0; p < panels; ++p) {
      for (int r = 0; r < count; ++r) {
        const float* pair = pairs + (p * kTileRows + 2 * r) * 16;
        store(sums + (p * kTileRows + first + r) * 16, add(load(pair), load(pair + 16)));
      }
    }
  }
}

void multiply_panels(const Call& call, const TensorView& w, const ProjectionTile& tile, float* decoded,
                     float* sums, float* pairs, std::byte* laid_out) {
  const TensorView& x = call.inputs[0];
  const std::int64_t k = w.shape[1];
  const std::int64_t x_stride = x.rank > 1 ? x.strides[x.rank - 2] : k;
  const std::int64_t panel_bytes = panel_shape(w.dtype, k).bytes;
  const auto multiply = [&](const std::byte* panel, std::int64_t first, std::int64_t count) {
    float* to = sums + first * (kPanelSumsBytes / 4);
    if (terms_of(call) == 2) {
      const auto* rows = static_cast<const BlockQ8A*>(x.data) + 2 * tile.first_row * (x_stride / 32);
      for (std::int64_t p = 0; p < count; p += kDotPanels) {
        multiply_pairs(w.dtype, rows, x_stride / 32, panel + p * panel_bytes, k, tile.rows,
                       smaller(kDotPanels, count - p), pairs, to + p * (kPanelSumsBytes / 4));
      }
    } else if (x.dtype == DType::Q8A) {
      const auto* rows = static_cast<const BlockQ8A*>(x.data) + tile.first_row * (x_stride / 32);
      matmul_tile_int8_of(w.dtype, rows, x_stride / 32, panel, k, tile.rows, count, to);
    } else if (x.dtype == DType::BF16) {
      const auto* rows = static_cast<const std::uint16_t*>(x.data) + tile.first_row * x_stride;
      matmul_tile_bf16(rows, x_stride, panel, k, tile.rows, count, to);
    } else {
      const auto* rows = static_cast<const float*>(x.data) + tile.first_row * x_stride;
      matmul_tile_float_of(w.dtype, rows, x_stride, panel, k, tile.rows, count, decoded, to);
    }
  };
  for_panels(w, tile.first_column / kPanelColumns, blocks_of(tile.columns, kPanelColumns), laid_out,
             multiply);
}

ProjectionTile tile_at(const Call& call, std::int64_t index) {
  const Sections sections = sections_of(call);
  const std::int64_t rows = projection_rows(call);
  std::int64_t columns = 0;
  for (std::int64_t i = 0; i < sections.count; ++i) {
    const ProjectionSection section = section_at(sections, i);
    columns += blocks_of(call.inputs[section.weight].shape[0], tile_columns(section, rows));
  }
  ProjectionTile tile;
  tile.first_row = index / columns * kTileRows;
  tile.rows = static_cast<int>(smaller(kTileRows, rows - tile.first_row));
  std::int64_t column = index % columns;
  for (std::int64_t i = 0; i < sections.count; ++i) {
    tile.section = section_at(sections, i);
    const std::int64_t width = tile_columns(tile.section, rows);
    const std::int64_t n = call.inputs[tile.section.weight].shape[0];
    const std::int64_t here = blocks_of(n, width);
    if (column >= here) {
      column -= here;
      continue;
    }
    tile.first_column = column * width;
    tile.columns = static_cast<int>(smaller(width, n - tile.first_column));
    break;
  }
  return tile;
}

// Asks for the tile's part of the residual: its rows lie far apart, and by the time the products are done it
// is at hand.
void fetch_residual(const Call& call, const ProjectionTile& tile) {
  const TensorView& residual = call.inputs[tile.section.residual];
  const std::int64_t stride = residual.strides[residual.rank - 2];
  for (std::int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
    const float* from = floats(residual) + row * stride + tile.first_column;
    for (int c = 0; c < tile.columns; c += 16) __builtin_prefetch(from + c, 0, 2);
  }
}

void run(const Call& call, std::int64_t index) {
  const ProjectionTile tile = tile_at(call, index);
  if (tile.section.residual >= 0) fetch_residual(call, tile);
  auto* decoded = reinterpret_cast<float*>(call.scratch);
  auto* factors = reinterpret_cast<float*>(call.scratch + kSegmentBytes);
  auto* sums = factors + kTileRows;
  float* gates = sums + blocks_of(tile.columns, kPanelColumns) * (kPanelSumsBytes / 4);
  float* pairs = gates + (tile.section.gate < 0 ? 0 : gates - sums);
  // Behind the pairs, whose room is a multiple of 64 bytes as all before it.
  auto* laid_out =
      reinterpret_cast<std::byte*>(pairs) + (terms_of(call) == 2 ? kDotPanels * kPanelSumsBytes : 0);
  multiply_panels(call, call.inputs[tile.section.weight], tile, decoded, sums, pairs, laid_out);
  if (tile.section.gate >= 0)
    multiply_panels(call, call.inputs[tile.section.gate], tile, decoded, gates, pairs, laid_out);
  const bool scaled = row_factors(call, tile, factors);
  for (int row = 0; row < tile.rows; ++row) {
    alignas(64) float values[kLargestHead];
    const Vec16 factor = broadcast(scaled ? factors[row] : 1.0F);
    for (int c = 0; c < tile.columns; c += 16) {
      const std::int64_t at = c / 16 * (kPanelSumsBytes / 4) + row * 16;
      Vec16 value = load(sums + at);
      if (scaled) value = mul(value, factor);
      if (tile.section.gate >= 0) {
        Vec16 gate = load(gates + at);
        if (scaled) gate = mul(gate, factor);
        value = mul(activate(tile.section.activation, gate), value);
      }
      store(values + c, value);
    }
    finish_row(call, tile, tile.first_row + row, values);
  }
}

constexpr Kernel kKernels[] = {{HONE_KERNEL_NAME("projection.bf16.panel16"), "projection", kThisIsa, false,
                                accepts_projection_bf16, tile_count, run, scratch_bytes},
                               {HONE_KERNEL_NAME("projection.q8a.panel16"), "projection", kThisIsa, false,
                                accepts_projection_int8, tile_count, run, scratch_bytes},
                               {HONE_KERNEL_NAME("projection.f32.panel16"), "projection", kThisIsa, false,
                                accepts_projection_float, tile_count, run, scratch_bytes}};

}  // namespace

KernelList projection_kernels() {
  if (kThisIsa == Isa::Amx) return {kKernels, 1};  // tiles are of bf16
  return {kKernels, 3};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
