// What a projection computes in f64, by the equations of tensor/projection.h, each value with the error that
// the fast kernel's order of roundings may have.
#pragma once

#include "projection_test_support.h"

namespace hone::test {

// A value in f64 with the most by which the fast kernel may differ from it.
struct Bounded {
  double value = 0;
  double error = 0;
};
inline Bounded plus(Bounded a, Bounded b) {
  const double value = a.value + b.value;
  return {value, a.error + b.error + kUnitRoundoff * (std::fabs(value) + a.error + b.error)};
}
inline Bounded times(Bounded a, Bounded b) {
  const double value = a.value * b.value;
  const double error = std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
  return {value, error + kUnitRoundoff * (std::fabs(value) + error)};
}
inline Bounded exactly(double value) {
  return {value, 0};
}

// What the section makes of one row, by the equations of tensor/projection.h.
class RowModel {
 public:
  RowModel(ProjectionProblem& p, std::size_t s, std::int64_t row)
      : p_(p), section_(p.section(s)), spec_(p.spec().sections[s]), row_(row) {}

  std::vector<Bounded> values() {
    std::vector<Bounded> v = multiply(section_.weight);
    if (section_.gate >= 0) gate(v);
    for (std::size_t i = 0; section_.bias >= 0 && i < v.size(); ++i)
      v[i] = plus(v[i], exactly(p_.input(section_.bias).get(static_cast<std::int64_t>(i))));
    if (section_.head_norm >= 0) norm_heads(v);
    if (section_.cosine >= 0) rotate(v);
    for (std::size_t i = 0; section_.residual >= 0 && i < v.size(); ++i)
      v[i] = plus(v[i], exactly(p_.input(section_.residual).get(at(i))));
    return v;
  }
  // v * (next_norm + next_offset).
  std::vector<Bounded> scaled(std::vector<Bounded> v) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double w = p_.input(section_.next_norm).get(static_cast<std::int64_t>(i));
      v[i] = times(v[i], plus(exactly(w), exactly(p_.spec().next_offset)));
    }
    return v;
  }
  // Sums of 32 squares: two products, a sum of both and a tree of four.
  static std::vector<Bounded> squares(const std::vector<Bounded>& v) {
    std::vector<Bounded> sums(v.size() / 32);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const Bounded square = times(v[i], v[i]);
      sums[i / 32].value += square.value;
      sums[i / 32].error += square.error + 5.01 * kUnitRoundoff * (square.value + square.error);
    }
    return sums;
  }

 private:
  std::int64_t at(std::size_t column) const { return row_ * spec_.n + static_cast<std::int64_t>(column); }

  // The chains of matmul_test.cc. In int8, terms are products of blocks, for q4_1 each in two parts, which
  // are at most three times the largest weight of the block; the reference kernel rounds x = scale * quant
  // and the weight once each, the fast one the sum of a block of x.
  std::vector<Bounded> multiply(std::int64_t number) {
    const Weights& w = p_.weight(number);
    const std::int64_t k = p_.spec().k;
    const double roundings = p_.spec().q8a
                                 ? static_cast<double>(k / 32 * 2 + 4)
                                 : static_cast<double>(std::min<std::int64_t>(k, 256) + (k + 255) / 256);
    const Bounded factor = row_factor();
    std::vector<Bounded> out;
    for (std::int64_t n = 0; n < spec_.n; ++n) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t block = 0; block < k; block += 32) {
        const std::int64_t end = std::min(k, block + 32);
        double largest = 0;
        for (std::int64_t i = block; i < end; ++i)
          largest = std::max(largest, std::fabs(static_cast<double>(w.value(n, i))));
        for (std::int64_t i = block; i < end; ++i) {
          for (std::int64_t term = 0; term < p_.spec().terms; ++term) {
            const double x = p_.input(0).get((row_ * p_.spec().terms + term) * k + i);
            const auto weight = static_cast<double>(w.value(n, i));
            sum += x * weight;
            magnitude += std::fabs(x) * (p_.spec().q8a ? 3 * largest : std::fabs(weight));
          }
        }
      }
      const Bounded product{sum, 1.01 * roundings * kUnitRoundoff * magnitude};
      out.push_back(factor.value == 1 ? product : times(product, factor));
    }
    return out;
  }
  // The sums are positive: of the additions' relative error the root has half; its rounding is one more.
  Bounded row_factor() {
    if (p_.row_sums() < 0) return exactly(1);
    const std::int64_t blocks = p_.spec().k / kSquaresBlock;
    double total = 0;
    for (std::int64_t i = 0; i < blocks; ++i) total += p_.input(p_.row_sums()).get(row_ * blocks + i);
    const double factor = 1 / std::sqrt(total / static_cast<double>(p_.spec().k) + kProjectionEps);
    const double additions = static_cast<double>((blocks + 15) / 16) + 4;
    return {factor, (additions / 2 + 1) * 1.01 * kUnitRoundoff * factor};
  }
  // Slopes of both functions are at most 1.13; quantised_input_test.cc derives their roundings.
  void gate(std::vector<Bounded>& v) {
    const std::vector<Bounded> gates = multiply(section_.gate);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double z = gates[i].value;
      const bool silu = spec_.gate == ProjectionActivation::Silu;
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (z + 0.044715 * z * z * z);
      const double activated = silu ? z / (1 + std::exp(-z)) : z / 2 * (1 + std::tanh(inner));
      v[i] = times({activated, 1.13 * gates[i].error + 12.1 * kUnitRoundoff * std::fabs(z)}, v[i]);
    }
  }
  // The factor 1 / sqrt(mean(v^2) + eps) moves by half of what the mean does, relatively; it is rounded to
  // f32, the sum in f64. The weight's sum and both products are rounded once each.
  void norm_heads(std::vector<Bounded>& v) {
    for (std::size_t head = 0; head < v.size(); head += static_cast<std::size_t>(spec_.head)) {
      double mean = 0;
      double moved = 0;
      for (std::int64_t i = 0; i < spec_.head; ++i) {
        const Bounded& x = v[head + static_cast<std::size_t>(i)];
        mean += x.value * x.value / static_cast<double>(spec_.head);
        moved += (2 * std::fabs(x.value) + x.error) * x.error / static_cast<double>(spec_.head);
      }
      const double size = 1 / std::sqrt(mean + kHeadEps);
      const Bounded factor{size, 1.01 * size * (moved / (mean + kHeadEps) / 2 + kUnitRoundoff)};
      for (std::int64_t i = 0; i < spec_.head; ++i) {
        const double w = p_.input(section_.head_norm).get(i) + p_.spec().head_offset;
        const Bounded weight{w, p_.spec().head_offset == 0 ? 0 : kUnitRoundoff * std::fabs(w)};
        Bounded& x = v[head + static_cast<std::size_t>(i)];
        x = times(times(x, factor), weight);
      }
    }
  }
  void rotate(std::vector<Bounded>& v) {
    const std::int64_t half = spec_.rotary / 2;
    for (std::int64_t head = 0; head < spec_.n; head += spec_.head) {
      for (std::int64_t i = 0; i < half; ++i) {
        const std::int64_t first = head + (spec_.interleaved ? 2 * i : i);
        const std::int64_t second = head + (spec_.interleaved ? 2 * i + 1 : i + half);
        const Bounded c = exactly(p_.input(section_.cosine).get(row_ * half + i));
        const Bounded s = exactly(p_.input(section_.sine).get(row_ * half + i));
        const Bounded a = v[static_cast<std::size_t>(first)];
        const Bounded b = v[static_cast<std::size_t>(second)];
        Bounded turned = times(b, s);
        turned.value = -turned.value;
        v[static_cast<std::size_t>(first)] = plus(times(a, c), turned);
        v[static_cast<std::size_t>(second)] = plus(times(b, c), times(a, s));
      }
    }
  }

  ProjectionProblem& p_;
  const ProjectionSection& section_;
  const SectionSpec& spec_;
  std::int64_t row_;
};

// By how much the rounding of [first, first + 32) to `dtype` may part two values.
inline double conversion_error(DType dtype, const std::vector<Bounded>& v, std::size_t i) {
  const double size = std::fabs(v[i].value) + v[i].error;
  if (dtype == DType::F32) return kUnitRoundoff * size;
  if (dtype == DType::F16) return 0x1p-10 * size + 0x1p-23;
  if (dtype == DType::BF16) return 0x1p-7 * size;
  // Each is rounded by half a scale; the scales differ by the error of the largest value.
  double largest = 0;
  for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j)
    largest = std::max(largest, std::fabs(v[j].value) + 2 * v[j].error);
  return 1.01 * largest / 127;
}

// Elements [first, first + v.size()) of both outputs.
inline void expect_within_bound(Guarded& fast, Guarded& reference, std::int64_t first,
                                const std::vector<Bounded>& v, const std::string& what) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    const std::int64_t at = first + static_cast<std::int64_t>(i);
    const double rounded = conversion_error(fast.view().dtype, v, i);
    // The reference kernel is the model rounded once, and so tests the model too.
    ASSERT_LE(std::fabs(reference.get(at) - v[i].value), rounded + 1e-9 * std::fabs(v[i].value) + 1e-12)
        << what << ", reference kernel, element " << i << " of row " << first / static_cast<int>(v.size());
    ASSERT_LE(std::fabs(fast.get(at) - reference.get(at)), v[i].error + 1.01 * rounded)
        << what << ", element " << i << " of row " << first / static_cast<int>(v.size());
  }
}

inline void expect_section_within_bound(ProjectionProblem& p, ProjectionProblem& reference, std::size_t s,
                                        std::int64_t row) {
  const ProjectionSection& section = p.section(s);
  const std::int64_t n = p.spec().sections[s].n;
  const std::string& what = p.spec().name;
  RowModel model(p, s, row);
  const std::vector<Bounded> v = model.values();
  const auto output = [&](ProjectionProblem& of, std::int64_t further) -> Guarded& {
    return of.outputs()[static_cast<std::size_t>(section.output + further)];
  };
  std::int64_t first = row * n;
  if (section.state >= 0) {
    const std::int32_t position = p.input(section.positions).data<std::int32_t>()[row];
    if (position < 0) return;
    first = (row / p.tokens() * p.capacity() + position) * n;
  }
  expect_within_bound(output(p, 0), output(reference, 0), first, v, what);
  if (section.next_norm < 0) return;
  // Of v as the reference kernel has rounded it, from which the fast kernel's may be one rounding further.
  std::vector<Bounded> rounded = v;
  for (std::size_t i = 0; i < v.size(); ++i) {
    rounded[i].value = output(reference, 0).get(first + static_cast<std::int64_t>(i));
    rounded[i].error += kUnitRoundoff * (std::fabs(v[i].value) + v[i].error);
  }
  expect_within_bound(output(p, 1), output(reference, 1), first, model.scaled(rounded), what + ", x * w");
  const std::vector<Bounded> squares = RowModel::squares(rounded);
  for (std::size_t i = 0; i < squares.size(); ++i) {
    const std::int64_t at = row * n / 32 + static_cast<std::int64_t>(i);
    ASSERT_LE(std::fabs(output(p, 2).get(at) - output(reference, 2).get(at)), squares[i].error)
        << what << ", sums of squares";
    ASSERT_LE(std::fabs(output(reference, 2).get(at) - squares[i].value), squares[i].error);
  }
}

// Rows of a state to which no token is appended stay as they are.
inline void expect_other_rows_untouched(ProjectionProblem& p, std::size_t s) {
  const ProjectionSection& section = p.section(s);
  if (section.state < 0) return;
  std::vector<bool> written(static_cast<std::size_t>(p.batch() * p.capacity()), false);
  for (std::int64_t row = 0; row < p.rows(); ++row) {
    const std::int32_t position = p.input(section.positions).data<std::int32_t>()[row];
    if (position >= 0) written[static_cast<std::size_t>(row / p.tokens() * p.capacity() + position)] = true;
  }
  Guarded& state = p.outputs()[static_cast<std::size_t>(section.output)];
  const auto row_bytes = static_cast<std::size_t>(dtype_bytes(state.view().dtype, p.spec().sections[s].n));
  for (std::size_t row = 0; row < written.size(); ++row) {
    const auto* bytes = state.data<std::byte>() + row * row_bytes;
    const bool untouched =
        std::all_of(bytes, bytes + row_bytes, [](std::byte byte) { return byte == std::byte{0x55}; });
    ASSERT_EQ(untouched, !written[row]) << p.spec().name << ", row " << row << " of the state";
  }
}

}  // namespace hone::test
