// How far rounding is expected to move each value of a graph of primitive ops: the standard deviation of
// every element, from the numbers themselves.
//
// Each operation returns y (1 + d) with |d| <= u, u = 2^-24 for f32. Over many operations the d behave like
// independent draws, evenly spread (Higham and Mary 2019): an error of variance (u y)^2 / 3. An error of an
// operand x moves y by its derivative, so to first order
//
//   var(y) = sum over operands of (dy/dx)^2 var(x) + (u y)^2 / 3
//
// A matmul in f32 rounds each of its K partial sums s_k. For terms of no common sign s_k^2 grows like k times
// the mean square of a term, so its own part is u^2/3 * (K/2 * sum of squared terms + y^2). Reductions, norms
// and softmax add in f64 and round once. A block of q8a rounds to steps of max|x|/127: variance step^2 / 12.
//
// The rules are a table by op: rounding_rules.cc.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "engine/graph_runner.h"

namespace hone {

// Half the distance of two neighbours of 1: the largest relative error of one rounding to `dtype`; 0 for
// types that are no floats.
double unit_roundoff(DType dtype);

// One value with the standard deviation of each element; an empty `deviation` is 0 everywhere.
struct Spread {
  Type type;
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  std::vector<double> deviation;
};

// A node whose operands are known and whose result has been computed.
struct RoundingSite {
  const Node& node;
  std::vector<const Spread*> inputs;
  const Spread& output;  // its deviation is asked for
  const Bindings& bindings;
};

struct RoundingRule {
  std::string_view op;
  Result<std::vector<double>> (*deviation)(const RoundingSite& site);
};
const RoundingRule* find_rounding_rule(std::string_view op);

// The numbers of a weight of type `type` as a run reads them: rounded, where the checkpoint has it in a float
// type and the graph in blocks (passes/quantise_weights.h).
Result<std::vector<double>> weight_values(const Checkpoint& checkpoint, const GraphInput& input,
                                          const Type& type, const Bindings& bindings);

// The spreads of `graph`'s values (primitive ops only) by name. `inputs`: what it was fed, by the names of
// its inputs; `values`: all that it computed; weights are read from `checkpoint`. `fed`: deviations of
// inputs, weights among them, that are not exact. Errors (Hone): an op without a rule.
Result<std::map<std::string, Spread>> rounding_spreads(const Graph& graph, const NamedTensors& inputs,
                                                       const NamedTensors& values,
                                                       const Checkpoint& checkpoint, const Bindings& bindings,
                                                       const std::map<std::string, std::vector<double>>& fed);

}  // namespace hone
