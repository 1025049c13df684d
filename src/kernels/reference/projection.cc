// projection: tensor/projection.h says what it computes. A tile is one row of one section.
#include "tensor/projection.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/reference/columns.h"
#include "kernels/reference/list.h"
#include "kernels/signature_helpers.h"

namespace hone::kernels::reference {
namespace {

std::int64_t section_count(const Call& call) {
  std::int64_t count = 0;
  attribute_integers(call.attributes, "sections", &count);
  return count / kProjectionFields;
}

ProjectionSection section_at(const Call& call, std::int64_t index) {
  std::int64_t count = 0;
  const std::int64_t* fields = attribute_integers(call.attributes, "sections", &count);
  ProjectionSection section;
  std::memcpy(static_cast<void*>(&section), fields + index * kProjectionFields, sizeof(section));
  return section;
}

std::int64_t terms_of(const Call& call) {
  return attribute_integer(call.attributes, "terms", 1);
}

std::int64_t tile_count(const Call& call) {
  return element_count(without_last(call.inputs[0], 1)) / terms_of(call) * section_count(call);
}

// Behind the columns: the row's values and one operand's.
std::int64_t longest(const Call& call) {
  std::int64_t n = 0;
  for (std::int64_t i = 0; i < section_count(call); ++i)
    n = std::max(n, call.inputs[section_at(call, i).weight].shape[0]);
  return n;
}
std::int64_t scratch_bytes(const Call& call) {
  return column_scratch_bytes(last_extent(call.inputs[0]), 1) + 2 * longest(call) * 8;
}

struct Row {
  const Call& call;
  ProjectionSection section;
  std::int64_t index = 0;  // of the rows, flattened
  std::int64_t n = 0;
  double* values = nullptr;   // [N]
  double* operand = nullptr;  // [N]

  std::int64_t tokens() const { return call.inputs[0].shape[1]; }
  const TensorView& input(std::int64_t number) const { return call.inputs[number]; }
};

// x W^T of the row, times the factor of a folded norm.
void multiply(const Row& row, const TensorView& weight, const ColumnScratch& scratch, double factor,
              double* out) {
  const TensorView& x = row.input(0);
  const std::int64_t k = last_extent(x);
  ColumnSource source{weight, 0, 0, 1, k};
  if (weight.layout == Layout::Strided) {
    source.n_stride = weight.strides[0];
    source.k_stride = weight.strides[1];
  }
  const std::int64_t terms = terms_of(row.call);
  load_reals(x, offset_of(without_last(x, 1), row.index * terms), last_stride(x), k, scratch.row);
  for (std::int64_t i = 0; terms == 2 && i < k; i += kSquaresBlock) {
    double rest[kSquaresBlock];
    load_reals(x, offset_of(without_last(x, 1), row.index * 2 + 1) + i, 1, kSquaresBlock, rest);
    for (std::int64_t j = 0; j < kSquaresBlock; ++j) scratch.row[i + j] += rest[j];
  }
  for (std::int64_t first = 0; first < row.n; first += kColumns) {
    double sums[kColumns];
    load_columns(source, first, row.n, scratch.decoded, scratch.columns);
    dot_columns(scratch.row, scratch.columns, k, sums);
    for (std::int64_t j = 0; j < std::min(kColumns, row.n - first); ++j) out[first + j] = sums[j] * factor;
  }
}

double row_factor(const Row& row) {
  const std::int64_t number = attribute_integer(row.call.attributes, "row_sums", -1);
  if (number < 0) return 1;
  const TensorView& sums = row.input(number);
  const std::int64_t offset = offset_of(without_last(sums, 1), row.index);
  double total = 0;
  for (std::int64_t i = 0; i < last_extent(sums); ++i) {
    double value = 0;
    load_reals(sums, offset + i * last_stride(sums), 1, 1, &value);
    total += value;
  }
  const double mean = total / static_cast<double>(last_extent(row.input(0)));
  return 1 / std::sqrt(mean + attribute_real(row.call.attributes, "eps", 0));
}

double activate(std::int64_t activation, double z) {
  if (activation == static_cast<std::int64_t>(ProjectionActivation::Silu)) return z / (1 + std::exp(-z));
  return z / 2 * (1 + std::tanh(std::sqrt(2 * std::numbers::inv_pi) * (z + 0.044715 * z * z * z)));
}

void rotate(const Row& row) {
  const TensorView& cosine = row.input(row.section.cosine);
  const TensorView& sine = row.input(row.section.sine);
  const std::int64_t pairs = last_extent(cosine);
  const bool interleaved = row.section.interleaved != 0;
  TensorView tokens = row.input(0);
  tokens.rank = 2;
  for (std::int64_t p = 0; p < pairs; ++p) {
    double turn[2];
    for (int i = 0; i < 2; ++i) {
      const TensorView& table = i == 0 ? cosine : sine;
      const std::int64_t offset = broadcast_offset(without_last(table, 1), tokens, row.index);
      load_reals(table, offset + p * last_stride(table), 1, 1, &turn[i]);
    }
    for (std::int64_t head = 0; head < row.n; head += row.section.head) {
      double& first = row.values[head + (interleaved ? 2 * p : p)];
      double& second = row.values[head + (interleaved ? 2 * p + 1 : p + pairs)];
      const double turned = first * turn[0] - second * turn[1];
      second = second * turn[0] + first * turn[1];
      first = turned;
    }
  }
}

void norm_heads(const Row& row) {
  const TensorView& weight = row.input(row.section.head_norm);
  const std::int64_t head = row.section.head;
  const double eps = attribute_real(row.call.attributes, "head_eps", 0);
  const double offset = attribute_real(row.call.attributes, "head_offset", 0);
  load_reals(weight, 0, last_stride(weight), head, row.operand);
  for (std::int64_t first = 0; first < row.n; first += head) {
    double* values = row.values + first;
    double sum = 0;
    for (std::int64_t i = 0; i < head; ++i) sum += values[i] * values[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(head) + eps);
    for (std::int64_t i = 0; i < head; ++i) values[i] *= scale * (row.operand[i] + offset);
  }
}

// Adds the bias [N] or the residual's row.
void add_operand(const Row& row, std::int64_t number) {
  if (number < 0) return;
  const TensorView& view = row.input(number);
  const std::int64_t offset = view.rank == 1 ? 0 : offset_of(without_last(view, 1), row.index);
  load_reals(view, offset, last_stride(view), row.n, row.operand);
  for (std::int64_t i = 0; i < row.n; ++i) row.values[i] += row.operand[i];
}

void append(const Row& row) {
  const TensorView& state = row.call.outputs[row.section.output];
  const TensorView& positions = row.input(row.section.positions);
  const std::int64_t position = integer_at(positions, row.index);
  if (position < 0) return;
  const std::int64_t input = row.call.attributes->integer("sequence", -1);
  const std::int64_t sequence =
      input < 0 ? row.index / row.tokens() : integer_at(row.input(input), row.index);
  const std::int64_t offset = sequence * state.strides[0] + position * state.strides[1];
  store_reals(state, offset, 1, row.n, row.values);
}

// The row's values to its place in `view`.
void store_values(const Row& row, const TensorView& view) {
  const int rank = row.input(0).rank - static_cast<int>(terms_of(row.call) - 1);
  if (view.dtype == DType::Q8A) return store_row(view, rank, row.index, row.n, row.values);
  store_reals(view, row.index * row.n, 1, row.n, row.values);
}

// v, v * (next_norm + next_offset) and the sums of squares, of v as it was rounded.
void store_normed(const Row& row) {
  const TensorView* outputs = row.call.outputs + row.section.output;
  const TensorView& weight = row.input(row.section.next_norm);
  const double offset = attribute_real(row.call.attributes, "next_offset", 0);
  load_reals(weight, 0, last_stride(weight), row.n, row.operand);
  for (std::int64_t i = 0; i < row.n; ++i)
    row.values[i] = static_cast<double>(static_cast<float>(row.values[i]));
  for (std::int64_t i = 0; i < row.n; i += kSquaresBlock) {
    double sum = 0;
    for (std::int64_t j = i; j < i + kSquaresBlock; ++j) sum += row.values[j] * row.values[j];
    store_reals(outputs[2], (row.index * row.n + i) / kSquaresBlock, 1, 1, &sum);
  }
  for (std::int64_t i = 0; i < row.n; ++i) row.values[i] *= row.operand[i] + offset;
  store_values(row, outputs[1]);
}

void run(const Call& call, std::int64_t tile) {
  const std::int64_t sections = section_count(call);
  Row row{call, section_at(call, tile % sections), tile / sections, 0, nullptr, nullptr};
  row.n = call.inputs[row.section.weight].shape[0];
  const std::int64_t k = last_extent(call.inputs[0]);
  const ColumnScratch scratch = column_scratch(call.scratch, k, 1);
  row.values = reinterpret_cast<double*>(call.scratch + column_scratch_bytes(k, 1));
  row.operand = row.values + longest(call);
  const double factor = row_factor(row);
  multiply(row, row.input(row.section.weight), scratch, factor, row.values);
  if (row.section.gate >= 0) {
    multiply(row, row.input(row.section.gate), scratch, factor, row.operand);
    for (std::int64_t i = 0; i < row.n; ++i)
      row.values[i] *= activate(row.section.activation, row.operand[i]);
  }
  add_operand(row, row.section.bias);
  for (std::int64_t i = 0; row.section.gate < 0 && row.section.activation != 0 && i < row.n; ++i)
    row.values[i] = activate(row.section.activation, row.values[i]);
  if (row.section.head_norm >= 0) norm_heads(row);
  if (row.section.cosine >= 0) rotate(row);
  add_operand(row, row.section.residual);
  if (row.section.state >= 0) return append(row);
  store_values(row, call.outputs[row.section.output]);
  if (row.section.next_norm >= 0) store_normed(row);
}

std::string_view accepts(const Signature& signature) {
  if (signature.inputs[0].shape.size() < 2) return "needs x [..,K]";
  if (!is_real(signature.inputs[0].dtype) && signature.inputs[0].dtype != DType::Q8A)
    return "needs activations of f64, f32, f16, bf16 or q8a";
  for (const OperandSpec& output : signature.outputs) {
    if (!is_contiguous_along_last_axis(output)) return "needs contiguous outputs";
  }
  return {};
}

constexpr Kernel kKernels[] = {{.name = "projection.reference",
                                .op = "projection",
                                .reference = true,
                                .accepts = accepts,
                                .tile_count = tile_count,
                                .run = run,
                                .scratch_bytes = scratch_bytes}};

}  // namespace

KernelList projection_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::reference
