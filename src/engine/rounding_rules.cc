// The rules of rounding_model.h, one row an op.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numeric>
#include <span>

#include "engine/rounding_model.h"

namespace hone {
namespace {

using Deviation = Result<std::vector<double>>;
using Extents = std::vector<std::int64_t>;

double square(double x) {
  return x * x;
}

// Of one rounding of y to `dtype`, its subnormals included.
double rounding_variance(double y, DType dtype) {
  if (!std::isfinite(y)) return 0;
  const double floor = dtype == DType::F16 ? 0x1p-25 : dtype == DType::F64 ? 0 : 0x1p-150;
  return square(unit_roundoff(dtype) * y) / 3 + square(floor) / 3;
}

double at(const std::vector<double>& values, std::size_t i) {
  return values.empty() ? 0 : values[i];
}

std::vector<double> roots(std::vector<double> variance) {
  for (double& v : variance) v = std::sqrt(v);
  return variance;
}

// Row-major strides of an operand as it is read along `shape`, 0 where it repeats.
Extents reading_strides(const Extents& own, const Extents& shape) {
  Extents strides(shape.size(), 0);
  std::int64_t step = 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::size_t from = own.size() - 1 - i;
    if (own[from] != 1) strides[shape.size() - 1 - i] = step;
    step *= own[from];
  }
  return strides;
}

// Calls visit(flat index in `shape`, offset under `strides`) for every element.
template <class Visit>
void walk(const Extents& shape, const Extents& strides, const Visit& visit) {
  Extents index(shape.size(), 0);
  std::int64_t offset = 0;
  const std::int64_t count = element_count(shape);
  for (std::int64_t flat = 0; flat < count; ++flat) {
    visit(static_cast<std::size_t>(flat), static_cast<std::size_t>(offset));
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

std::size_t axis_of(const RoundingSite& site, std::string_view name, std::size_t rank) {
  const std::int64_t axis = site.node.attributes.integer(name);
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

// --- elementwise: derivatives by operand -----------------------------------------------------------------

// The derivative of y = f(x0, x1, ..) by each operand.
using Derivatives = void (*)(const double* x, double y, double* d);

struct ElementwiseRow {
  std::string_view op;
  Derivatives derivatives;
  double roundings;  // of one operation, in units of u: fast exp, sine and their like are off by up to 2
};

constexpr std::array kElementwise{
    ElementwiseRow{"cast", [](const double*, double, double* d) { d[0] = 1; }, 1},
    ElementwiseRow{"neg", [](const double*, double, double* d) { d[0] = -1; }, 0},
    ElementwiseRow{"abs", [](const double*, double, double* d) { d[0] = 1; }, 0},
    ElementwiseRow{"exp", [](const double*, double y, double* d) { d[0] = y; }, 2},
    ElementwiseRow{"log", [](const double* x, double, double* d) { d[0] = 1 / x[0]; }, 2},
    ElementwiseRow{"sqrt", [](const double*, double y, double* d) { d[0] = y == 0 ? 0 : 0.5 / y; }, 1},
    ElementwiseRow{"rsqrt", [](const double* x, double y, double* d) { d[0] = -0.5 * y / x[0]; }, 2},
    ElementwiseRow{"sin", [](const double* x, double, double* d) { d[0] = std::cos(x[0]); }, 2},
    ElementwiseRow{"cos", [](const double* x, double, double* d) { d[0] = -std::sin(x[0]); }, 2},
    ElementwiseRow{"tanh", [](const double*, double y, double* d) { d[0] = 1 - y * y; }, 2},
    ElementwiseRow{"add", [](const double*, double, double* d) { d[0] = d[1] = 1; }, 1},
    ElementwiseRow{"sub", [](const double*, double, double* d) { d[0] = d[1] = 1; }, 1},
    ElementwiseRow{"mul",
                   [](const double* x, double, double* d) {
                     d[0] = x[1];
                     d[1] = x[0];
                   },
                   1},
    ElementwiseRow{"div",
                   [](const double* x, double y, double* d) {
                     d[0] = 1 / x[1];
                     d[1] = y / x[1];
                   },
                   1},
    ElementwiseRow{"max", [](const double* x, double y, double* d) { d[x[0] == y ? 0 : 1] = 1; }, 0},
    ElementwiseRow{"min", [](const double* x, double y, double* d) { d[x[0] == y ? 0 : 1] = 1; }, 0},
    ElementwiseRow{"pow",
                   [](const double* x, double y, double* d) {
                     d[0] = x[0] == 0 ? 0 : x[1] * y / x[0];
                     d[1] = x[0] > 0 ? y * std::log(x[0]) : 0;
                   },
                   2},
    ElementwiseRow{"select", [](const double* x, double, double* d) { d[x[0] != 0 ? 1 : 2] = 1; }, 0},
};

constexpr std::size_t kMostOperands = 3;

Deviation of_elementwise(const RoundingSite& site) {
  const auto* const row = std::find_if(kElementwise.begin(), kElementwise.end(),
                                       [&](const ElementwiseRow& r) { return r.op == site.node.op; });
  const Spread& out = site.output;
  const std::size_t operands = site.inputs.size();
  std::vector<std::vector<std::size_t>> offsets(operands);
  for (std::size_t i = 0; i < operands; ++i) {
    offsets[i].resize(out.values.size());
    walk(out.shape, reading_strides(site.inputs[i]->shape, out.shape),
         [&](std::size_t flat, std::size_t offset) { offsets[i][flat] = offset; });
  }
  // A widening cast is exact.
  const bool exact =
      row->op == "cast" && unit_roundoff(out.type.dtype) <= unit_roundoff(site.inputs[0]->type.dtype);
  const double roundings = exact ? 0 : row->roundings;
  std::vector<double> variance(out.values.size());
  for (std::size_t i = 0; i < variance.size(); ++i) {
    double x[kMostOperands] = {};
    double d[kMostOperands] = {};
    for (std::size_t k = 0; k < operands; ++k) x[k] = site.inputs[k]->values[offsets[k][i]];
    row->derivatives(x, out.values[i], d);
    variance[i] = square(roundings) * rounding_variance(out.values[i], out.type.dtype);
    for (std::size_t k = 0; k < operands; ++k) {
      const double deviation = at(site.inputs[k]->deviation, offsets[k][i]);
      // Where nothing is uncertain, an infinite derivative means nothing.
      if (deviation != 0) variance[i] += square(d[k] * deviation);
    }
  }
  return roots(std::move(variance));
}

// Comparisons, logic, indices: a result is right or another one altogether.
Deviation of_decision(const RoundingSite& site) {
  return std::vector<double>(site.output.values.size(), 0.0);
}

// --- views and moves ---------------------------------------------------------------------------------------

Deviation of_reshape(const RoundingSite& site) {
  return site.inputs[0]->deviation;
}

// Reads the input's deviation along `strides` from `begin` on.
Deviation moved(const RoundingSite& site, const Extents& strides, std::int64_t begin) {
  const std::vector<double>& from = site.inputs[0]->deviation;
  if (from.empty()) return std::vector<double>{};
  std::vector<double> out(site.output.values.size());
  walk(site.output.shape, strides, [&](std::size_t flat, std::size_t offset) {
    out[flat] = from[offset + static_cast<std::size_t>(begin)];
  });
  return out;
}

Deviation of_broadcast(const RoundingSite& site) {
  return moved(site, reading_strides(site.inputs[0]->shape, site.output.shape), 0);
}

Deviation of_permute(const RoundingSite& site) {
  const auto* axes = site.node.attributes.get<std::vector<std::int64_t>>("axes");
  const Extents own = reading_strides(site.inputs[0]->shape, site.inputs[0]->shape);
  Extents strides;
  for (const std::int64_t axis : *axes) strides.push_back(own[static_cast<std::size_t>(axis)]);
  return moved(site, strides, 0);
}

Deviation of_slice(const RoundingSite& site) {
  const Extents& shape = site.inputs[0]->shape;
  const std::size_t axis = axis_of(site, "axis", shape.size());
  const auto* range = site.node.attributes.get<std::vector<Dim>>("range");
  Extents strides = reading_strides(shape, shape);
  const std::int64_t begin = HONE_TRY((*range)[0].evaluate(site.bindings));
  return moved(site, strides, begin * strides[axis]);
}

Deviation of_concat(const RoundingSite& site) {
  const Extents& shape = site.output.shape;
  const std::size_t axis = axis_of(site, "axis", shape.size());
  const auto rest = shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1;
  const std::int64_t inner = std::accumulate(rest, shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<double> out(site.output.values.size(), 0.0);
  std::int64_t place = 0;
  for (const Spread* input : site.inputs) {
    const std::int64_t run = input->shape[axis] * inner;
    for (std::int64_t i = 0; i < std::ssize(input->deviation); ++i) {
      const std::int64_t to = i / run * shape[axis] * inner + place + i % run;
      out[static_cast<std::size_t>(to)] = input->deviation[static_cast<std::size_t>(i)];
    }
    place += run;
  }
  return out;
}

// Rows of inputs[0] by number.
Deviation of_gather(const RoundingSite& site) {
  const std::vector<double>& from = site.inputs[0]->deviation;
  if (from.empty()) return std::vector<double>{};
  const std::int64_t width = site.output.shape.back();
  std::vector<double> out;
  for (const double id : site.inputs[1]->values) {
    const auto begin = from.begin() + static_cast<std::int64_t>(id) * width;
    out.insert(out.end(), begin, begin + width);
  }
  return out;
}

Deviation of_take_along_axis(const RoundingSite& site) {
  const std::vector<double>& from = site.inputs[0]->deviation;
  if (from.empty()) return std::vector<double>{};
  const Extents& shape = site.inputs[0]->shape;
  const std::size_t axis = axis_of(site, "axis", shape.size());
  Extents strides = reading_strides(shape, shape);
  const auto step = static_cast<std::size_t>(strides[axis]);
  strides[axis] = 0;
  std::vector<double> out(site.output.values.size());
  walk(site.output.shape, strides, [&](std::size_t flat, std::size_t offset) {
    out[flat] = from[offset + static_cast<std::size_t>(site.inputs[1]->values[flat]) * step];
  });
  return out;
}

// All of the new value.
Deviation of_state_assign(const RoundingSite& site) {
  if (site.inputs[1]->deviation.empty()) return std::vector<double>(site.output.values.size(), 0.0);
  return site.inputs[1]->deviation;
}

// x in blocks of 32 whose step is 1/127 of the largest. A step that is rounded to f16 is off by 2^-11 of
// itself or, where it is subnormal, by 2^-25, and so are as many steps as make up an element.
std::vector<double> rounded_to_blocks(const Spread& x, bool f16_step) {
  constexpr std::size_t kBlock = 32;
  std::vector<double> variance(x.values.size());
  for (std::size_t begin = 0; begin + kBlock <= x.values.size(); begin += kBlock) {
    double largest = 0;
    for (std::size_t i = begin; i < begin + kBlock; ++i) largest = std::max(largest, std::abs(x.values[i]));
    const double step = largest / 127;
    const double off = f16_step ? std::max(step * 0x1p-11, 0x1p-25) : 0;
    for (std::size_t i = begin; i < begin + kBlock; ++i) {
      const double steps = step == 0 ? 0 : std::abs(x.values[i]) / step;
      variance[i] = square(step) / 12 + square(steps * off) / 3 + square(at(x.deviation, i));
    }
  }
  return roots(std::move(variance));
}

// Rows [B,T,..] into [B,C,..] at positions [B,T], as they are or rounded to q8_0.
Deviation of_state_append(const RoundingSite& site) {
  const Extents& shape = site.output.shape;
  const bool rounds = site.output.type.dtype != site.inputs[1]->type.dtype;
  const std::vector<double> rows =
      rounds ? rounded_to_blocks(*site.inputs[1], true) : site.inputs[1]->deviation;
  std::vector<double> out(site.output.values.size(), 0.0);
  if (rows.empty()) return out;
  const std::vector<double>& positions = site.inputs[2]->values;
  const std::int64_t width = std::ssize(rows) / std::ssize(positions);
  const std::int64_t tokens = std::ssize(positions) / shape[0];
  for (std::int64_t i = 0; i < std::ssize(positions); ++i) {
    const auto position = static_cast<std::int64_t>(positions[static_cast<std::size_t>(i)]);
    if (position < 0) continue;
    const bool flat = site.inputs.size() == 4;
    const std::int64_t sequence =
        flat ? static_cast<std::int64_t>(site.inputs[3]->values[static_cast<std::size_t>(i)]) : i / tokens;
    std::copy_n(rows.begin() + i * width, width, out.begin() + (sequence * shape[1] + position) * width);
  }
  return out;
}

// --- sums --------------------------------------------------------------------------------------------------

// Added in f64 and rounded once.
Deviation of_reduction(const RoundingSite& site) {
  const Spread& x = *site.inputs[0];
  const std::size_t axis = axis_of(site, "axis", x.shape.size());
  const auto rest = x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1;
  const std::int64_t inner = std::accumulate(rest, x.shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t extent = x.shape[axis];
  const bool largest = site.node.op == "reduce_max";
  std::vector<double> variance(site.output.values.size(), 0.0);
  for (std::int64_t i = 0; i < std::ssize(x.deviation); ++i) {
    double& sum = variance[static_cast<std::size_t>(i / (extent * inner) * inner + i % inner)];
    const double own = square(x.deviation[static_cast<std::size_t>(i)]);
    sum = largest ? std::max(sum, own) : sum + own;
  }
  for (std::size_t i = 0; i < variance.size(); ++i) {
    if (site.node.op == "reduce_mean") variance[i] /= square(static_cast<double>(extent));
    if (!largest) variance[i] += rounding_variance(site.output.values[i], site.output.type.dtype);
  }
  return roots(std::move(variance));
}

// The variance of one dot product of two rows of k elements, `b` with a step.
struct Row {
  const double* values;
  const double* deviation;  // nullptr: exact
  std::int64_t step;
};

double dot_variance(const Row& a, const Row& b, std::int64_t k, double y) {
  double from_operands = 0;
  double squared_terms = 0;
  for (std::int64_t i = 0; i < k; ++i) {
    const double x = a.values[i * a.step];
    const double w = b.values[i * b.step];
    squared_terms += square(x * w);
    if (a.deviation != nullptr) from_operands += square(a.deviation[i * a.step] * w);
    if (b.deviation != nullptr) from_operands += square(b.deviation[i * b.step] * x);
  }
  const double u = unit_roundoff(DType::F32);
  return from_operands + square(u) / 3 * static_cast<double>(k) / 2 * squared_terms +
         rounding_variance(y, DType::F32);
}

Row row_of(const Spread& spread, std::int64_t begin, std::int64_t step) {
  return {spread.values.data() + begin, spread.deviation.empty() ? nullptr : spread.deviation.data() + begin,
          step};
}

Deviation of_matmul(const RoundingSite& site) {
  const Spread& a = *site.inputs[0];
  const Spread& b = *site.inputs[1];
  const bool transposed = site.node.attributes.integer("transpose_b") != 0;
  const std::int64_t k = a.shape.back();
  const std::int64_t n = site.output.shape.back();
  const Extents rows(site.output.shape.begin(), site.output.shape.end() - 1);  // [..,M]
  // Where each row of the result finds its row of a and its matrix of b.
  Extents a_rows(a.shape.begin(), a.shape.end() - 1);
  Extents b_matrices(b.shape.begin(), b.shape.end() - 2);
  b_matrices.push_back(1);
  std::vector<std::size_t> matrix_of(site.output.values.size() / static_cast<std::size_t>(n));
  walk(rows, reading_strides(b_matrices, rows),
       [&](std::size_t flat, std::size_t at) { matrix_of[flat] = at; });
  std::vector<double> variance(site.output.values.size());
  walk(rows, reading_strides(a_rows, rows), [&](std::size_t flat, std::size_t a_row) {
    const Row left = row_of(a, static_cast<std::int64_t>(a_row) * k, 1);
    const std::int64_t matrix = static_cast<std::int64_t>(matrix_of[flat]) * n * k;
    for (std::int64_t j = 0; j < n; ++j) {
      const Row right = transposed ? row_of(b, matrix + j * k, 1) : row_of(b, matrix + j, n);
      const std::size_t i = flat * static_cast<std::size_t>(n) + static_cast<std::size_t>(j);
      variance[i] = dot_variance(left, right, k, site.output.values[i]);
    }
  });
  return roots(std::move(variance));
}

// x [..,J,K] or [..,1,K] by w [X,N,K], experts [..,J].
Deviation of_expert_matmul(const RoundingSite& site) {
  const Spread& x = *site.inputs[0];
  const Spread& w = *site.inputs[1];
  const std::int64_t k = x.shape.back();
  const std::int64_t n = site.output.shape.back();
  const Extents rows(site.output.shape.begin(), site.output.shape.end() - 1);
  const Extents x_rows(x.shape.begin(), x.shape.end() - 1);
  std::vector<double> variance(site.output.values.size());
  walk(rows, reading_strides(x_rows, rows), [&](std::size_t flat, std::size_t x_row) {
    const auto expert = static_cast<std::int64_t>(site.inputs[2]->values[flat]);
    for (std::int64_t j = 0; j < n; ++j) {
      const std::size_t i = flat * static_cast<std::size_t>(n) + static_cast<std::size_t>(j);
      variance[i] = dot_variance(row_of(x, static_cast<std::int64_t>(x_row) * k, 1),
                                 row_of(w, (expert * n + j) * k, 1), k, site.output.values[i]);
    }
  });
  return roots(std::move(variance));
}

// [..,2,K]: what the rounding of a row to q8a left, rounded itself, stands behind it. Their sum is off by the
// second rounding alone, which is put down to the second row.
Deviation of_two_terms(const RoundingSite& site) {
  constexpr std::size_t kBlock = 32;
  const Spread& x = *site.inputs[0];
  const auto k = static_cast<std::size_t>(x.shape.back());
  std::vector<double> variance(site.output.values.size(), 0.0);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t first = i / k * 2 * k + i % k;
    const std::size_t block = first + k - i % kBlock;
    double largest = 0;
    for (std::size_t j = block; j < block + kBlock; ++j)
      largest = std::max(largest, std::abs(site.output.values[j]));
    variance[first] = square(at(x.deviation, i));
    variance[first + k] = square(largest / 127) / 12;
  }
  return roots(std::move(variance));
}

Deviation of_quantize_q8a(const RoundingSite& site) {
  if (site.node.attributes.integer("terms", 1) == 2) return of_two_terms(site);
  return rounded_to_blocks(*site.inputs[0], false);
}

constexpr std::array kRules{
    RoundingRule{"constant", of_decision},
    RoundingRule{"iota", of_decision},
    RoundingRule{"less", of_decision},
    RoundingRule{"less_equal", of_decision},
    RoundingRule{"equal", of_decision},
    RoundingRule{"and", of_decision},
    RoundingRule{"or", of_decision},
    RoundingRule{"not", of_decision},
    RoundingRule{"top_k", of_decision},
    RoundingRule{"reshape", of_reshape},
    RoundingRule{"copy", of_reshape},
    RoundingRule{"permute", of_permute},
    RoundingRule{"broadcast", of_broadcast},
    RoundingRule{"slice", of_slice},
    RoundingRule{"concat", of_concat},
    RoundingRule{"gather", of_gather},
    RoundingRule{"take_along_axis", of_take_along_axis},
    RoundingRule{"state_append", of_state_append},
    RoundingRule{"state_assign", of_state_assign},
    RoundingRule{"reduce_sum", of_reduction},
    RoundingRule{"reduce_mean", of_reduction},
    RoundingRule{"reduce_max", of_reduction},
    RoundingRule{"matmul", of_matmul},
    RoundingRule{"expert_matmul", of_expert_matmul},
    RoundingRule{"quantize_q8a", of_quantize_q8a},
};

constexpr RoundingRule kElementwiseRule{"", of_elementwise};

}  // namespace

const RoundingRule* find_rounding_rule(std::string_view op) {
  for (const RoundingRule& rule : kRules) {
    if (rule.op == op) return &rule;
  }
  for (const ElementwiseRow& row : kElementwise) {
    if (row.op == op) return &kElementwiseRule;
  }
  return nullptr;
}

}  // namespace hone
