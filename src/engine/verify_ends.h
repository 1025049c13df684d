// The end-to-end half of verify: logits of a prefix of the chain beside O0's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "model/config.h"

namespace hone {

// The tolerance of the reference data, for a graph with these types: `A` is the largest |logit| of O0.
//   int8 activations: each block of 32 is off by up to 1/254 of its largest value, which moves the logits by
//   0.7 to 1.6 percent a branch in the Frobenius norm; 2L branches of independent errors: 0.02 sqrt(2L),
//   relative
//   q8_0 weights of a float checkpoint: as int8 activations, whose error they do not share
//   f16 or bf16 cache or activations: one rounding in each of the 2L branches: 8 u sqrt(2L) A
//   a cache of q8_0: blocks as those of int8 activations, in two of their places a layer
//   else f32: sqrt(K) roundings a dot product: 8 u sqrt(K) sqrt(2L) A
struct Tolerance {
  bool relative_distance = false;
  double factor = 0;  // of A, or of the norm

  bool operator==(const Tolerance&) const = default;
};
Tolerance tolerance_of(const Graph& graph, const Graph& o0, const ModelConfig& config);

// Distance of two rows of logits in the measure of the tolerance; infinite where one is no number.
double distance(std::span<const double> is, std::span<const double> of_o0, bool relative);

// Whether a chain makes logits larger or smaller as a whole. Rounding moves each token's logits y by an error
// e that has no side: the factor e.y / y.y is drawn anew for each token. What has a side (a scale that is
// forgotten, or rounded badly) is the same in all of them, and stands out of their mean although each logit
// hides it.
class ScaleOfLogits {
 public:
  // One token whose numbers are its own.
  void add(std::span<const double> is, std::span<const double> of_o0);

  // Of so few the deviation is not known.
  static constexpr std::size_t kFewest = 8;
  bool is_known() const { return factors_.size() >= kFewest; }
  // The mean of the factors, 0 without any.
  double mean() const;
  // What it may be: two roundings that all tokens share (a constant that two passes folded), and 7 standard
  // errors of the mean (t of n - 1 >= 7 degrees of freedom: beyond with a probability below 2e-4, of 19 below
  // 2e-6).
  double bound() const;

 private:
  std::vector<double> factors_;
};

}  // namespace hone
