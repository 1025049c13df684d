// What a projection does with one row of a tile after its products.
#pragma once

#include "kernels/fast/axes.h"
#include "kernels/fast/list.h"
#include "kernels/fast/math16.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/fast/rms_norm_row.h"
#include "kernels/fast/rope_row.h"
#include "kernels/fast/sum16.h"
#include "kernels/signature_helpers.h"
#include "tensor/projection.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

struct Sections {
  const std::int64_t* fields = nullptr;
  std::int64_t count = 0;
};
HONE_INLINE Sections sections_of(const Call& call) {
  Sections sections;
  sections.fields = attribute_integers(call.attributes, "sections", &sections.count);
  sections.count /= kProjectionFields;
  return sections;
}
HONE_INLINE ProjectionSection section_at(const Sections& sections, std::int64_t index) {
  ProjectionSection section;
  __builtin_memcpy(static_cast<void*>(&section), sections.fields + index * kProjectionFields,
                   sizeof(section));
  return section;
}

// Rows of the product: x has `terms` for each.
HONE_INLINE std::int64_t terms_of(const Call& call) {
  return attribute_integer(call.attributes, "terms", 1);
}
HONE_INLINE std::int64_t projection_rows(const Call& call) {
  return row_count(call.inputs[0]) / terms_of(call);
}

HONE_INLINE Vec16 activate(std::int64_t activation, Vec16 z) {
  return activation == static_cast<std::int64_t>(ProjectionActivation::Silu) ? silu(z) : gelu_tanh(z);
}

// A block of rows of x, its axes before the last flattened, by columns of one section. Columns are whole
// panels, but at the end of the section.
struct ProjectionTile {
  ProjectionSection section;
  std::int64_t first_column = 0, first_row = 0;
  int columns = 0, rows = 0;
};

// The factors of the tile's rows; false if no norm is folded into the products.
static inline bool row_factors(const Call& call, const ProjectionTile& tile, float* factors) {
  const std::int64_t input = attribute_integer(call.attributes, "row_sums", -1);
  if (input < 0) return false;
  const double eps = attribute_real(call.attributes, "eps", 0.0);
  const TensorView& sums = call.inputs[input];
  const std::int64_t blocks = sums.shape[sums.rank - 1];
  const auto length = static_cast<double>(call.inputs[0].shape[call.inputs[0].rank - 1]);
  for (int row = 0; row < tile.rows; ++row) {
    const float* from = static_cast<const float*>(sums.data) + (tile.first_row + row) * blocks;
    Vec16 total = zero16();
    for (std::int64_t i = 0; i < blocks; i += 16)
      total = add(total, load_partial(from + i, lanes_left(blocks, i)));
    factors[row] = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(sum(total)) / length + eps));
  }
  return true;
}

HONE_INLINE const float* floats(const TensorView& view) {
  return static_cast<const float*>(view.data);
}

static inline void norm_head(const Call& call, const ProjectionSection& section, float* values) {
  const auto offset = static_cast<float>(attribute_real(call.attributes, "head_offset", 0.0));
  rms_norm_row(
      values, floats(call.inputs[section.head_norm]), attribute_real(call.attributes, "head_eps", 0.0),
      offset, section.head,
      [values](std::int64_t i, Vec16 normed, int count) { store_partial(values + i, normed, count); });
}

static inline void rotate(const Call& call, const ProjectionSection& section, std::int64_t row,
                          float* values) {
  const TensorView& cosine = call.inputs[section.cosine];
  const TensorView& sine = call.inputs[section.sine];
  const std::int64_t tokens = call.inputs[0].shape[1];
  const float* cos = floats(cosine) + token_offset(cosine, row / tokens, row % tokens);
  const float* sin = floats(sine) + token_offset(sine, row / tokens, row % tokens);
  if (section.interleaved != 0) {
    rotate_pairs(values, cos, sin, cosine.shape[2], values);
  } else {
    rotate_halves(values, cos, sin, cosine.shape[2], values);
  }
}

// `count` values to elements [offset, offset + count) of memory of this type.
static inline void store_row(DType dtype, void* data, std::int64_t offset, const float* values, int count) {
  if (dtype == DType::Q8A) return quantize_row(values, count, static_cast<BlockQ8A*>(data) + offset / 32);
  for (int c = 0; c < count; c += 16) {
    const int lanes = count - c < 16 ? count - c : 16;
    const Vec16 value = load(values + c);
    if (dtype == DType::F16) {
      store_f16_partial(static_cast<std::uint16_t*>(data) + offset + c, value, lanes);
    } else if (dtype == DType::BF16) {
      store_bf16_partial(static_cast<std::uint16_t*>(data) + offset + c, value, lanes);
    } else {
      store_partial(static_cast<float*>(data) + offset + c, value, lanes);
    }
  }
}

// The tile's part of row `row` to `view`; q8a [..,2,N] in two terms.
static inline void store_values(const Call& call, const TensorView& view, const ProjectionTile& tile,
                                std::int64_t row, std::int64_t n, const float* values) {
  const std::int64_t rank = call.inputs[0].rank - (terms_of(call) - 1);
  if (view.dtype != DType::Q8A || view.rank == rank)
    return store_row(view.dtype, view.data, row * n + tile.first_column, values, tile.columns);
  BlockQ8A* first = static_cast<BlockQ8A*>(view.data) + (2 * row * n + tile.first_column) / 32;
  for (int c = 0; c < tile.columns; c += 32) quantize_terms(values + c, first + c / 32, first + (n + c) / 32);
}

static inline void append_row(const Call& call, const ProjectionTile& tile, std::int64_t row,
                              const float* values) {
  const TensorView& state = call.outputs[tile.section.output];
  const TensorView& positions = call.inputs[tile.section.positions];
  const std::int64_t tokens = call.inputs[0].shape[1];
  const std::int64_t b = row / tokens;
  const std::int64_t t = row % tokens;
  const std::int64_t position =
      static_cast<const std::int32_t*>(positions.data)[b * positions.strides[0] + t * positions.strides[1]];
  if (position < 0) return;
  const std::int64_t sequence = sequence_of(call, attribute_integer(call.attributes, "sequence", -1), b, t);
  store_row(state.dtype, state.data,
            sequence * state.strides[0] + position * state.strides[1] + tile.first_column, values,
            tile.columns);
}

// The tile's part of row `row`, and what the folded norm of the next products needs of it.
static inline void store_normed(const Call& call, const ProjectionTile& tile, std::int64_t row,
                                std::int64_t n, float* values) {
  const TensorView& scaled = call.outputs[tile.section.output + 1];
  const float* w = floats(call.inputs[tile.section.next_norm]) + tile.first_column;
  const auto offset = static_cast<float>(attribute_real(call.attributes, "next_offset", 0.0));
  auto* sums = static_cast<float*>(call.outputs[tile.section.output + 2].data) +
               (row * n + tile.first_column) / kSquaresBlock;
  for (int c = 0; c < tile.columns; c += 32) {
    const Vec16 a = load(values + c);
    const Vec16 b = load(values + c + 16);
    sums[c / 32] = sum(add(mul(a, a), mul(b, b)));
    for (int half = 0; half < 32; half += 16) {
      Vec16 factor = load(w + c + half);
      if (offset != 0) factor = add(factor, broadcast(offset));
      store(values + c + half, mul(half == 0 ? a : b, factor));
    }
  }
  store_values(call, scaled, tile, row, n, values);
}

// Everything behind the products of row `row` (of all rows) in the tile. `values` has room for whole vectors.
static inline void finish_row(const Call& call, const ProjectionTile& tile, std::int64_t row, float* values) {
  const ProjectionSection& section = tile.section;
  const std::int64_t n = call.inputs[section.weight].shape[0];
  if (section.bias >= 0) {
    const float* bias = floats(call.inputs[section.bias]) + tile.first_column;
    for (int c = 0; c < tile.columns; c += 16)
      store(values + c, add(load(values + c), load_partial(bias + c, lanes_left(tile.columns, c))));
  }
  if (section.gate < 0 && section.activation != 0) {
    for (int c = 0; c < tile.columns; c += 16)
      store(values + c, activate(section.activation, load(values + c)));
  }
  if (section.head_norm >= 0) norm_head(call, section, values);
  if (section.cosine >= 0) rotate(call, section, row, values);
  if (section.residual >= 0) {
    const TensorView& residual = call.inputs[section.residual];
    const float* from = floats(residual) + row * residual.strides[residual.rank - 2] + tile.first_column;
    for (int c = 0; c < tile.columns; c += 16)
      store(values + c, add(load_partial(from + c, lanes_left(tile.columns, c)), load(values + c)));
  }
  if (section.state >= 0) return append_row(call, tile, row, values);
  const TensorView& out = call.outputs[section.output];
  store_values(call, out, tile, row, n, values);
  if (section.next_norm >= 0) store_normed(call, tile, row, n, values);
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
