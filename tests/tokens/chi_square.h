// Quantiles of the chi-square distribution, for tests of draws.
#pragma once

#include <cmath>

namespace hone {

// P(X <= x) for X with `degrees` degrees of freedom: the regularised incomplete gamma function P(k/2, x/2) by
// its power series (Abramowitz and Stegun 6.5.29).
inline double chi_square_cdf(double x, int degrees) {
  if (x <= 0) return 0;
  const double a = degrees / 2.0;
  const double half = x / 2;
  double term = std::exp(a * std::log(half) - half - std::lgamma(a + 1));
  double sum = term;
  for (int n = 1; n < 10000 && term > sum * 1e-16; ++n) sum += term *= half / (a + n);
  return sum;
}

// The x with chi_square_cdf(x, degrees) = p.
inline double chi_square_quantile(double p, int degrees) {
  double low = 0;
  double high = degrees + 1000.0;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (chi_square_cdf(middle, degrees) < p ? low : high) = middle;
  }
  return low;
}

}  // namespace hone
