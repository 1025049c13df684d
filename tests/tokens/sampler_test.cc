#include "tokens/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <map>

#include "base/philox.h"

namespace hone {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Sampler make(const SamplerOptions& options, std::size_t vocab) {
  auto sampler = Sampler::create(options, static_cast<std::int32_t>(vocab));
  EXPECT_TRUE(sampler.ok());
  return std::move(sampler).value();
}

// Known answers that the authors publish with Random123 (kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox_4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox_4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Sampler, GreedyTakesTheLowestIdOnATie) {
  Sampler sampler = make({}, 5);
  const std::vector<float> logits{1.0F, 3.0F, -kInfinity, 3.0F, 2.0F};
  EXPECT_EQ(*sampler.sample(logits, {}, 0), 1);
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  SamplerOptions options;
  options.repeat_penalty = 2.0;
  Sampler sampler = make(options, 3);
  const std::vector<float> positive{4.0F, 3.0F, 1.0F};
  EXPECT_EQ(*sampler.sample(positive, std::vector<std::int32_t>{0, 99, -1}, 0), 1);
  EXPECT_EQ(*sampler.sample(positive, {}, 0), 0);
  const std::vector<float> negative{-1.0F, -1.5F, -9.0F};
  EXPECT_EQ(*sampler.sample(negative, std::vector<std::int32_t>{0}, 0), 1);
}

TEST(Sampler, BadLogitsAreErrors) {
  Sampler sampler = make({}, 2);
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F, std::nanf("")}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F, kInfinity}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{-kInfinity, -kInfinity}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F}, {}, 0).ok());
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  const auto where = [](SamplerOptions options) {
    const auto sampler = Sampler::create(options, 4);
    return sampler.ok() ? std::string("ok") : sampler.error().where;
  };
  EXPECT_EQ(where({}), "ok");
  EXPECT_EQ(where({.temperature = -1.0}), "temperature");
  EXPECT_EQ(where({.temperature = std::nan("")}), "temperature");
  EXPECT_EQ(where({.top_k = -1}), "top-k");
  EXPECT_EQ(where({.top_p = 0.0}), "top-p");
  EXPECT_EQ(where({.top_p = 1.5}), "top-p");
  EXPECT_EQ(where({.min_p = -0.1}), "min-p");
  EXPECT_EQ(where({.repeat_penalty = 0.0}), "repeat-penalty");
}

// Pearson's statistic of `draws` samples against `expected`, which sums to 1; ids with probability 0 must not
// occur.
double chi_square(const SamplerOptions& options, const std::vector<float>& logits,
                  const std::vector<double>& expected, int draws) {
  Sampler sampler = make(options, logits.size());
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) {
    const auto id = sampler.sample(logits, {}, static_cast<std::uint64_t>(i));
    EXPECT_TRUE(id.ok());
    ++counts[static_cast<std::size_t>(*id)];
  }
  double sum = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double mean = expected[i] * draws;
    if (mean == 0.0) {
      EXPECT_EQ(counts[i], 0) << i;
    } else {
      sum += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
  }
  return sum;
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

// The bounds are the 0.999 quantiles of the chi-square distribution; the seeds are fixed, so a pass stays
// one.
TEST(Sampler, DrawsFollowTheExactProbabilities) {
  const std::vector<double> p{0.1, 0.4, 0.05, 0.25, 0.2};
  const std::vector<float> logits = logs(p);
  constexpr int kDraws = 20000;
  EXPECT_LT(chi_square({.temperature = 1.0, .seed = 1}, logits, p, kDraws), 18.47);  // 4 degrees of freedom
  // Temperature 0.5 squares the probabilities: 0.01 0.16 0.0025 0.0625 0.04, sum 0.275.
  EXPECT_LT(chi_square({.temperature = 0.5, .seed = 2}, logits,
                       {0.01 / 0.275, 0.16 / 0.275, 0.0025 / 0.275, 0.0625 / 0.275, 0.04 / 0.275}, kDraws),
            18.47);
  EXPECT_LT(chi_square({.temperature = 1.0, .top_k = 2, .seed = 3}, logits,
                       {0, 0.4 / 0.65, 0, 0.25 / 0.65, 0}, kDraws),
            10.83);  // 1
  // 0.4 + 0.25 < 0.7 <= 0.4 + 0.25 + 0.2.
  EXPECT_LT(chi_square({.temperature = 1.0, .top_p = 0.7, .seed = 4}, logits,
                       {0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85}, kDraws),
            13.82);  // 2
  // At least 0.45 times 0.4.
  EXPECT_LT(chi_square({.temperature = 1.0, .min_p = 0.45, .seed = 5}, logits,
                       {0, 0.4 / 0.85, 0, 0.25 / 0.85, 0.2 / 0.85}, kDraws),
            13.82);
  // Top-p sees what top-k left: of 0.4 and 0.25, 0.6 needs the first alone (0.4 / 0.65 = 0.615).
  EXPECT_EQ(
      chi_square({.temperature = 1.0, .top_k = 2, .top_p = 0.6, .seed = 6}, logits, {0, 1, 0, 0, 0}, 100),
      0.0);
}

TEST(Sampler, TiesInACutKeepTheLowerId) {
  const std::vector<float> flat(8, 0.5F);
  EXPECT_LT(chi_square({.temperature = 1.0, .top_k = 2, .seed = 7}, flat, {0.5, 0.5, 0, 0, 0, 0, 0, 0}, 4000),
            10.83);
  EXPECT_LT(
      chi_square({.temperature = 1.0, .top_p = 0.25, .seed = 8}, flat, {0.5, 0.5, 0, 0, 0, 0, 0, 0}, 4000),
      10.83);
}

TEST(Sampler, ADrawDependsOnSeedAndPositionAlone) {
  const std::vector<float> logits(1000, 0.0F);
  Sampler a = make({.temperature = 1.0, .seed = 9}, 1000);
  Sampler b = make({.temperature = 1.0, .seed = 9}, 1000);
  Sampler c = make({.temperature = 1.0, .seed = 10}, 1000);
  int same = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto first = *a.sample(logits, {}, i);
    EXPECT_EQ(*b.sample(logits, {}, 49 - i), *a.sample(logits, {}, 49 - i));
    same += first == *c.sample(logits, {}, i) ? 1 : 0;
  }
  EXPECT_LT(same, 5);
}

}  // namespace
}  // namespace hone
