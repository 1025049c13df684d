#include "engine/verify_ends.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "engine/cut_graph.h"
#include "engine/rounding_model.h"

namespace hone {
namespace {

constexpr double kUnit = 0x1p-24;

// True if the graph reads a weight in blocks that O0 reads in a float type.
bool rounds_weights(const Graph& graph, const Graph& o0) {
  return std::ranges::any_of(graph.inputs, [&](const GraphInput& input) {
    const GraphInput* was = o0.find_input(input.name);
    return input.kind == InputKind::Weight && was != nullptr &&
           dtype_row(graph.type(input.value).dtype).is_quantised &&
           !dtype_row(o0.type(was->value).dtype).is_quantised;
  });
}

}  // namespace

Tolerance tolerance_of(const Graph& graph, const Graph& o0, const ModelConfig& config) {
  const double branches = std::sqrt(2.0 * static_cast<double>(config.layers));
  double unit = kUnit;
  const std::set<ValueId> fixed = static_values(graph);  // weights are exact in any type
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.outputs) {
      const DType dtype = graph.type(value).dtype;
      const bool narrow = (dtype == DType::F16 || dtype == DType::BF16) && !fixed.contains(value);
      if (narrow) unit = std::max(unit, unit_roundoff(dtype));
    }
  }
  const bool caches = std::ranges::any_of(graph.inputs, [&](const GraphInput& input) {
    return input.kind == InputKind::State && graph.type(input.value).dtype == DType::Q8_0;
  });
  const bool activations = caches || std::ranges::any_of(graph.values, [](const auto& value) {
                             return value.type.dtype == DType::Q8A;
                           });
  const bool weights = rounds_weights(graph, o0);
  if (activations || weights)
    return {true, 0.02 * branches * (activations && weights ? std::sqrt(2.0) : 1.0)};
  if (unit > kUnit) return {false, 8 * unit * branches};
  const auto k = static_cast<double>(std::max({config.dim, config.ffn, config.heads * config.head_dim}));
  return {false, 8 * unit * std::sqrt(k) * branches};
}

double distance(std::span<const double> is, std::span<const double> of_o0, bool relative) {
  double largest = 0;
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    const double d = std::abs(is[i] - of_o0[i]);
    if (!std::isfinite(d)) return std::numeric_limits<double>::max();
    largest = std::max(largest, d);
    difference += d * d;
    norm += of_o0[i] * of_o0[i];
  }
  if (!relative) return largest;
  return norm == 0 ? (difference == 0 ? 0 : std::numeric_limits<double>::max())
                   : std::sqrt(difference / norm);
}

void ScaleOfLogits::add(std::span<const double> is, std::span<const double> of_o0) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    error += (is[i] - of_o0[i]) * of_o0[i];
    norm += of_o0[i] * of_o0[i];
  }
  factors_.push_back(norm > 0 ? error / norm : 0);
}

double ScaleOfLogits::mean() const {
  if (factors_.empty()) return 0;
  return std::accumulate(factors_.begin(), factors_.end(), 0.0) / static_cast<double>(factors_.size());
}

double ScaleOfLogits::bound() const {
  const double middle = mean();
  const auto n = static_cast<double>(factors_.size());
  double variance = 0;
  for (const double factor : factors_) variance += (factor - middle) * (factor - middle) / (n - 1);
  return 2 * kUnit + 7 * std::sqrt(variance / n);
}

}  // namespace hone
