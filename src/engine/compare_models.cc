#include "engine/compare_models.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "engine/likelihood.h"

namespace hone {
namespace {

double log_sum(std::span<const float> logits) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum);
}

std::ptrdiff_t top(std::span<const float> logits) {
  return std::ranges::max_element(logits) - logits.begin();
}

struct Sums {
  std::vector<double> divergences;
  std::int64_t same_top = 0;
  double source_nll = 0;
  double other_nll = 0;
};

// One step of both models; adds the rows whose next token lies in the window.
Status add_step(Session& source, Session& other, std::span<const std::int32_t> window, std::int64_t at,
                std::int64_t count, Sums& sums) {
  const auto begin = window.begin() + at;
  const std::vector<std::int32_t> part(begin, begin + count);
  std::vector<Session::Row> rows;
  rows.reserve(part.size());
  for (std::int64_t i = 0; i < count; ++i) rows.push_back({0, i});
  const std::span<const float> p = HONE_TRY(source.step({&part, 1}, {&at, 1}, rows));
  const std::span<const float> q = HONE_TRY(other.step({&part, 1}, {&at, 1}, rows));
  const std::size_t vocabulary = p.size() / part.size();
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::int32_t next = window[static_cast<std::size_t>(at) + i + 1];
    const std::span<const float> row = p.subspan(i * vocabulary, vocabulary);
    const std::span<const float> other_row = q.subspan(i * vocabulary, vocabulary);
    sums.divergences.push_back(divergence(row, other_row));
    sums.same_top += top(row) == top(other_row) ? 1 : 0;
    sums.source_nll += negative_log_likelihood(row, next);
    sums.other_nll += negative_log_likelihood(other_row, next);
  }
  return {};
}

Error bad_text(std::string message, std::string expected, std::string actual) {
  return Error{ErrorCode::BadInput, Fault::User,       "text", std::move(message),
               std::move(expected), std::move(actual), {}};
}

}  // namespace

double divergence(std::span<const float> source, std::span<const float> other) {
  const double source_sum = log_sum(source);
  const double other_sum = log_sum(other);
  double out = 0;
  for (std::size_t i = 0; i < source.size(); ++i) {
    const double log_p = static_cast<double>(source[i]) - source_sum;
    const double log_q = static_cast<double>(other[i]) - other_sum;
    out += std::exp(log_p) * (log_p - log_q);
  }
  // Rounding can leave a tiny negative sum where the distributions are equal.
  return std::max(out, 0.0);
}

Result<Comparison> compare_models(Session& source, Session& other, std::span<const std::int32_t> ids,
                                  std::int64_t window) {
  const std::int64_t vocabulary = source.model().config.vocabulary;
  if (other.model().config.vocabulary != vocabulary) {
    return Error{ErrorCode::BadModel,
                 Fault::User,
                 "compare",
                 "two models are compared over one vocabulary",
                 fmt::format("{} tokens", vocabulary),
                 fmt::format("{} tokens", other.model().config.vocabulary),
                 {}};
  }
  if (ids.size() < 2) {
    return bad_text("a comparison needs a token to predict", "at least 2 tokens",
                    fmt::format("{}", ids.size()));
  }
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary) {
      return bad_text("a token id is outside the vocabulary", fmt::format("0 to {}", vocabulary - 1),
                      fmt::format("{}", id));
    }
  }
  const std::int64_t chunk = std::min(source.model().plan.bound.find('T').value_or(1),
                                      other.model().plan.bound.find('T').value_or(1));
  Sums sums;
  Comparison out;
  const auto count = std::ssize(ids);
  for (std::int64_t first = 0; first + 1 < count; first += window) {
    const auto text = ids.subspan(static_cast<std::size_t>(first),
                                  static_cast<std::size_t>(std::min(window + 1, count - first)));
    const std::size_t before = sums.divergences.size();
    const std::int64_t predicted = std::ssize(text) - 1;
    for (std::int64_t at = 0; at < predicted; at += chunk) {
      HONE_TRY(add_step(source, other, text, at, std::min(chunk, predicted - at), sums));
    }
    double sum = 0;
    for (std::size_t i = before; i < sums.divergences.size(); ++i) sum += sums.divergences[i];
    const double mean = sum / static_cast<double>(predicted);
    out.kl_mean += sum;
    if (first == 0 || mean > out.worst.kl_mean) out.worst = {first, predicted, mean};
  }
  std::ranges::sort(sums.divergences, std::greater<>());
  const std::size_t tokens = sums.divergences.size();
  const std::size_t worst = std::max<std::size_t>(1, tokens / 100);
  for (std::size_t i = 0; i < worst; ++i) out.kl_worst_percent += sums.divergences[i];
  const auto all = static_cast<double>(tokens);
  out.tokens = static_cast<std::int64_t>(tokens);
  out.kl_mean /= all;
  out.kl_largest = sums.divergences.front();
  out.kl_worst_percent /= static_cast<double>(worst);
  out.same_top_rate = static_cast<double>(sums.same_top) / all;
  out.source_nll_mean = sums.source_nll / all;
  out.other_nll_mean = sums.other_nll / all;
  return out;
}

}  // namespace hone
