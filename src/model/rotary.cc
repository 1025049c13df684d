#include "model/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hone {
namespace {

double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  if (wavelength < rope.original_context / rope.high_frequency_factor) return frequency;
  if (wavelength > rope.original_context / rope.low_frequency_factor) return frequency / rope.factor;
  const double blend = (rope.original_context / wavelength - rope.low_frequency_factor) /
                       (rope.high_frequency_factor - rope.low_frequency_factor);
  return (1 - blend) * frequency / rope.factor + blend * frequency;
}

// The pair, as a real number, that turns `turns` times within the original context.
double pair_of_turns(const RopeConfig& rope, double turns) {
  return static_cast<double>(rope.dim) * std::log(rope.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.theta));
}

void apply_yarn(const RopeConfig& rope, std::vector<double>& frequencies) {
  double low = pair_of_turns(rope, rope.beta_fast);
  double high = pair_of_turns(rope, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dim - 1));
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

// theta^(-2i/R) with theta of each sequence, f64 [B,1,R/2].
ValueId dynamic_frequencies(GraphBuilder& build, const RopeConfig& rope, ValueId lengths) {
  const std::int64_t half = rope.dim / 2;
  const auto f64 = [&build](double value) { return build.scalar(value, DType::F64); };
  const ValueId length = build.reshape(build.cast(lengths, DType::F64), {Dim::symbol('B'), Dim(1), Dim(1)});
  const ValueId longest = build.node("max", {length, f64(rope.original_context)});
  const ValueId stretch = build.sub(
      build.div(build.mul(longest, f64(rope.factor)), f64(rope.original_context)), f64(rope.factor - 1));
  const auto dim = static_cast<double>(rope.dim);
  const ValueId theta = build.mul(build.node("pow", {stretch, f64(dim / (dim - 2))}), f64(rope.theta));
  std::vector<double> exponents;
  exponents.reserve(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) exponents.push_back(-2.0 * static_cast<double>(i) / dim);
  return build.node("pow", {theta, build.constant(DType::F64, std::move(exponents), {Dim(half)})});
}

// The frequencies over one of two lists of divisors, f64 [B,1,R/2].
ValueId long_rope_frequencies(GraphBuilder& build, const RopeConfig& rope, const RopeTensors& tensors,
                              ValueId frequencies, ValueId lengths) {
  const Dim half(rope.dim / 2);
  const auto factors = [&](ValueId tensor, const std::vector<double>& values) {
    if (tensor >= 0) return tensor;
    return build.constant(DType::F64, values, {half});
  };
  const ValueId length = build.reshape(build.cast(lengths, DType::F64), {Dim::symbol('B'), Dim(1), Dim(1)});
  const ValueId is_long = build.node("less", {build.scalar(rope.original_context, DType::F64), length});
  const ValueId divisors = build.select(is_long, factors(tensors.long_factors, rope.long_factors),
                                        factors(tensors.short_factors, rope.short_factors));
  return build.div(frequencies, divisors);
}

}  // namespace

std::vector<double> rope_frequencies(const RopeConfig& rope) {
  std::vector<double> frequencies;
  frequencies.reserve(static_cast<std::size_t>(rope.dim / 2));
  for (std::int64_t i = 0; i < rope.dim / 2; ++i) {
    frequencies.push_back(
        std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.dim)));
  }
  if (rope.kind == RopeKind::Linear) {
    for (double& frequency : frequencies) frequency /= rope.factor;
  } else if (rope.kind == RopeKind::Llama3) {
    for (double& frequency : frequencies) frequency = llama3_frequency(rope, frequency);
  } else if (rope.kind == RopeKind::Yarn) {
    apply_yarn(rope, frequencies);
  }
  return frequencies;
}

RotaryTable rotary_table(GraphBuilder& build, const RopeConfig& rope, const RopeTensors& tensors,
                         ValueId positions, ValueId lengths) {
  const Dim half(rope.dim / 2);
  ValueId frequencies = -1;
  if (rope.kind == RopeKind::Dynamic) {
    frequencies = dynamic_frequencies(build, rope, lengths);
  } else {
    frequencies = build.constant(DType::F64, rope_frequencies(rope), {half});
    if (tensors.freqs >= 0) frequencies = build.div(frequencies, tensors.freqs);
    if (rope.kind == RopeKind::LongRope) {
      frequencies = long_rope_frequencies(build, rope, tensors, frequencies, lengths);
    }
  }
  const ValueId column =
      build.reshape(build.cast(positions, DType::F64), {Dim::symbol('B'), Dim::symbol('T'), Dim(1)});
  const ValueId angles = build.mul(column, frequencies);  // [B,T,R/2]
  const auto scaled = [&](std::string_view function) {
    ValueId value = build.node(function, {angles});
    if (rope.attention_factor != 1) value = build.mul(value, build.scalar(rope.attention_factor, DType::F64));
    return build.cast(value, DType::F32);
  };
  const ValueId cos = scaled("cos");
  return {cos, scaled("sin")};
}

ValueId rotate(GraphBuilder& build, const RopeConfig& rope, const RotaryTable& table, ValueId x) {
  const Shape shape = build.shape(x);
  const auto axis = static_cast<std::int64_t>(shape.size()) - 1;
  const std::int64_t half = rope.dim / 2;
  Shape broadcast{Dim::symbol('B'), Dim::symbol('T')};
  broadcast.resize(shape.size() - 1, Dim(1));
  broadcast.push_back(Dim(half));
  const ValueId cos = build.reshape(table.cos, broadcast);
  const ValueId sin = build.reshape(table.sin, broadcast);
  const bool partial = !(shape.back() == Dim(rope.dim));
  ValueId turning = partial ? build.slice(x, axis, Dim(0), Dim(rope.dim)) : x;
  const auto turn = [&](ValueId first, ValueId second) {
    const ValueId a = build.sub(build.mul(first, cos), build.mul(second, sin));
    const ValueId b = build.add(build.mul(second, cos), build.mul(first, sin));
    return std::pair{a, b};
  };
  ValueId turned = 0;
  if (rope.interleaved) {
    const Shape lead(shape.begin(), shape.end() - 1);
    const auto with = [&lead](std::initializer_list<Dim> tail) {
      Shape out = lead;
      out.insert(out.end(), tail.begin(), tail.end());
      return out;
    };
    turning = build.reshape(turning, with({Dim(half), Dim(2)}));
    const Shape single = with({Dim(half)});
    const auto [a, b] = turn(build.reshape(build.slice(turning, axis + 1, Dim(0), Dim(1)), single),
                             build.reshape(build.slice(turning, axis + 1, Dim(1), Dim(2)), single));
    const Shape column = with({Dim(half), Dim(1)});
    turned = build.reshape(build.concat({build.reshape(a, column), build.reshape(b, column)}, axis + 1),
                           with({Dim(rope.dim)}));
  } else {
    const auto [a, b] = turn(build.slice(turning, axis, Dim(0), Dim(half)),
                             build.slice(turning, axis, Dim(half), Dim(rope.dim)));
    turned = build.concat({a, b}, axis);
  }
  if (!partial) return turned;
  return build.concat({turned, build.slice(x, axis, Dim(rope.dim), shape.back())}, axis);
}

}  // namespace hone
