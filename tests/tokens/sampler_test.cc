#include "tokens/sampler.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/philox.h"
#include "chi_square.h"
#include "json_lines.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;

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
  EXPECT_EQ(*sampler.sample(logits, {}, {}, 0), 1);
}

TEST(Sampler, RepeatPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  SamplerOptions options;
  options.repeat_penalty = 2.0;
  Sampler sampler = make(options, 3);
  const std::vector<float> positive{4.0F, 3.0F, 1.0F};
  EXPECT_EQ(*sampler.sample(positive, Ids{0, 99, -1}, {}, 0), 1);
  EXPECT_EQ(*sampler.sample(positive, {}, {}, 0), 0);
  const std::vector<float> negative{-1.0F, -1.5F, -9.0F};
  EXPECT_EQ(*sampler.sample(negative, Ids{}, Ids{0}, 0), 1);
}

TEST(Sampler, BadLogitsAreErrors) {
  Sampler sampler = make({}, 2);
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F, std::nanf("")}, {}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F, kInfinity}, {}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{-kInfinity, -kInfinity}, {}, {}, 0).ok());
  EXPECT_FALSE(sampler.sample(std::vector<float>{1.0F}, {}, {}, 0).ok());
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
  EXPECT_EQ(where({.typical_p = 0.0}), "typical-p");
  EXPECT_EQ(where({.typical_p = std::nan("")}), "typical-p");
  EXPECT_EQ(where({.repeat_penalty = 0.0}), "repeat-penalty");
  EXPECT_EQ(where({.presence_penalty = std::nan("")}), "presence-penalty");
  EXPECT_EQ(where({.frequency_penalty = static_cast<double>(kInfinity)}), "frequency-penalty");
}

TEST(ChiSquare, QuantilesAreThoseOfTheTables) {
  // Abramowitz and Stegun, table 26.8.
  EXPECT_NEAR(chi_square_quantile(0.999, 1), 10.828, 5e-4);
  EXPECT_NEAR(chi_square_quantile(0.999, 4), 18.467, 5e-4);
  EXPECT_NEAR(chi_square_quantile(0.95, 10), 18.307, 5e-4);
  EXPECT_NEAR(chi_square_quantile(0.999, 30), 59.703, 5e-4);
}

struct Case {
  SamplerOptions options;
  std::vector<float> logits;
  Ids prompt{};
  Ids answer{};
};

// Draws at positions 0 to draws - 1 against `expected`, the exact probabilities, by Pearson's test at the
// 0.999 quantile. Ids of probability 0 must not occur; ids that are expected less than 5 times count as one
// class. The seeds are fixed, so a pass stays one.
void expect_distribution(const Case& test, const std::vector<double>& expected, int draws = 20000) {
  Sampler sampler = make(test.options, test.logits.size());
  std::vector<int> counts(test.logits.size());
  for (int i = 0; i < draws; ++i) {
    const auto id = sampler.sample(test.logits, test.prompt, test.answer, static_cast<std::uint64_t>(i));
    ASSERT_TRUE(id.ok());
    ++counts[static_cast<std::size_t>(*id)];
  }
  double statistic = 0;
  int classes = 0;
  const auto add = [&](double mean, int count) {
    statistic += (count - mean) * (count - mean) / mean;
    ++classes;
  };
  double rare_mean = 0;
  int rare_count = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double mean = expected[i] * draws;
    if (mean == 0) {
      EXPECT_EQ(counts[i], 0) << i;
    } else if (mean < 5) {
      rare_mean += mean;
      rare_count += counts[i];
    } else {
      add(mean, counts[i]);
    }
  }
  if (rare_mean > 0) add(rare_mean, rare_count);
  if (classes > 1) {
    EXPECT_LT(statistic, chi_square_quantile(0.999, classes - 1));
  }
}

std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

// {0, 4, 3} -> {0, 4/7, 3/7}
std::vector<double> shares(std::vector<double> weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST(Sampler, DrawsFollowTheExactProbabilities) {
  const std::vector<double> p{0.1, 0.4, 0.05, 0.25, 0.2};
  const std::vector<float> logits = logs(p);
  expect_distribution({{.temperature = 1.0, .seed = 1}, logits}, p);
  expect_distribution({{.temperature = 0.5, .seed = 2}, logits}, shares({0.01, 0.16, 0.0025, 0.0625, 0.04}));
  expect_distribution({{.temperature = 1.0, .top_k = 2, .seed = 3}, logits}, shares({0, 0.4, 0, 0.25, 0}));
  // 0.4 + 0.25 < 0.7 <= 0.4 + 0.25 + 0.2.
  expect_distribution({{.temperature = 1.0, .top_p = 0.7, .seed = 4}, logits},
                      shares({0, 0.4, 0, 0.25, 0.2}));
  // At least 0.45 times 0.4.
  expect_distribution({{.temperature = 1.0, .min_p = 0.45, .seed = 5}, logits},
                      shares({0, 0.4, 0, 0.25, 0.2}));
  // The entropy is 1.4165; -ln p: 2.303 0.916 2.996 1.386 1.609. The nearest are 0.25, 0.2, 0.4.
  expect_distribution({{.temperature = 1.0, .typical_p = 0.4, .seed = 6}, logits},
                      shares({0, 0, 0, 0.25, 0.2}));
  expect_distribution({{.temperature = 1.0, .typical_p = 0.5, .seed = 7}, logits},
                      shares({0, 0.4, 0, 0.25, 0.2}));
}

TEST(Sampler, EachStepSeesWhatTheOnesBeforeLeft) {
  const std::vector<float> logits = logs({0.1, 0.4, 0.05, 0.25, 0.2});
  // Of 0.4 and 0.25, 0.6 needs the first alone: 0.4 / 0.65 = 0.615.
  expect_distribution({{.temperature = 1.0, .top_k = 2, .top_p = 0.6, .seed = 8}, logits}, {0, 1, 0, 0, 0});
  // Temperature 0.5 before min-p: 0.0625 / 0.16 < 0.45, which 0.25 / 0.4 is not.
  expect_distribution({{.temperature = 0.5, .min_p = 0.45, .seed = 9}, logits}, {0, 1, 0, 0, 0});
  // Of 0.4 and 0.25 the entropy is 0.6663; -ln p: 0.4855 and 0.9555. The first is nearer, which it is not of
  // all five.
  expect_distribution({{.temperature = 1.0, .top_k = 2, .typical_p = 0.2, .seed = 10}, logits},
                      {0, 1, 0, 0, 0});
  // The penalty comes before the temperature: (1 - 2) / 2 against 0.
  expect_distribution({{.temperature = 2.0, .presence_penalty = 2.0, .seed = 11}, {1.0F, 0.0F}, {}, {0}},
                      shares({std::exp(-0.5), 1}));
}

TEST(Sampler, PenaltiesOfTheAnswerLeaveThePromptAlone) {
  const std::vector<float> flat(4, 0.0F);
  const Ids prompt{3, 3, 3};
  const Ids answer{1, 2, 1, 99, -1};
  expect_distribution({{.temperature = 1.0, .presence_penalty = 0.5, .seed = 12}, flat, prompt, answer},
                      shares({1, std::exp(-0.5), std::exp(-0.5), 1}));
  expect_distribution({{.temperature = 1.0, .frequency_penalty = 0.5, .seed = 13}, flat, prompt, answer},
                      shares({1, std::exp(-1.0), std::exp(-0.5), 1}));
  // First the factor, then what is subtracted; the factor once, however often an id stands there.
  expect_distribution(
      {{.temperature = 1.0,
        .repeat_penalty = 2.0,
        .presence_penalty = 0.25,
        .frequency_penalty = -0.5,
        .seed = 14},
       {2.0F, 2.0F, -2.0F, 2.0F},
       prompt,
       answer},
      shares({std::exp(2.0), std::exp(1.0 - 0.25 + 1.0), std::exp(-4.0 - 0.25 + 0.5), std::exp(1.0)}));
}

TEST(Sampler, GreedyLooksAtTheLogitsAfterThePenalties) {
  Sampler sampler = make({.frequency_penalty = 1.0}, 3);
  const std::vector<float> logits{2.0F, 1.5F, -kInfinity};
  EXPECT_EQ(*sampler.sample(logits, {}, Ids{}, 0), 0);
  EXPECT_EQ(*sampler.sample(logits, {}, Ids{0, 2}, 0), 1);
  EXPECT_EQ(*sampler.sample(logits, {}, Ids{0, 1}, 0), 0);
}

TEST(Sampler, HugePenaltiesStayFinite) {
  for (const double penalty : {1e300, -1e300}) {
    SamplerOptions options{.temperature = 1.0, .frequency_penalty = penalty};
    options.repeat_penalty = 1e-300;
    Sampler sampler = make(options, 3);
    EXPECT_TRUE(sampler.sample(std::vector<float>{1.0F, 2.0F, -3.0F}, {}, Ids{0, 0, 1, 2}, 0).ok());
  }
}

// Against the logits processors of transformers (tools/make_sampling_references.py).
TEST(Sampler, AgreesWithTransformers) {
  const auto cases = nlohmann::json::parse(read_text(HONE_TEST_DATA "/sampling/transformers.json"));
  ASSERT_GE(cases.size(), 16U);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& wanted = cases[i]["options"];
    SCOPED_TRACE(wanted.dump());
    SamplerOptions options;
    options.temperature = wanted.value("temperature", 1.0);
    options.top_k = wanted.value("top_k", 0);
    options.top_p = wanted.value("top_p", 1.0);
    options.min_p = wanted.value("min_p", 0.0);
    options.typical_p = wanted.value("typical_p", 1.0);
    options.repeat_penalty = wanted.value("repeat_penalty", 1.0);
    options.seed = 100 + i;
    expect_distribution({options, cases[i]["logits"].get<std::vector<float>>(), cases[i]["seen"].get<Ids>()},
                        cases[i]["probabilities"].get<std::vector<double>>());
  }
}

TEST(Sampler, TiesInACutKeepTheLowerId) {
  const std::vector<float> flat(8, 0.5F);
  const std::vector<double> first_two{0.5, 0.5, 0, 0, 0, 0, 0, 0};
  expect_distribution({{.temperature = 1.0, .top_k = 2, .seed = 15}, flat}, first_two, 4000);
  expect_distribution({{.temperature = 1.0, .top_p = 0.25, .seed = 16}, flat}, first_two, 4000);
  expect_distribution({{.temperature = 1.0, .typical_p = 0.25, .seed = 17}, flat}, first_two, 4000);
}

TEST(Sampler, CutsLeaveAtLeastOne) {
  const std::vector<float> logits{0.0F, 3.0F, 1.0F};
  const SamplerOptions narrow{
      .temperature = 1.0, .top_k = 1, .top_p = 1e-300, .min_p = 1.0, .typical_p = 1e-300};
  Sampler sampler = make(narrow, 3);
  EXPECT_EQ(*sampler.sample(logits, {}, {}, 5), 1);
  // A temperature that leaves one weight above zero.
  Sampler cold = make({.temperature = 1e-300, .typical_p = 0.5}, 3);
  EXPECT_EQ(*cold.sample(logits, {}, {}, 5), 1);
}

TEST(Sampler, ADrawDependsOnSeedAndPositionAlone) {
  const std::vector<float> logits(1000, 0.0F);
  Sampler a = make({.temperature = 1.0, .seed = 9}, 1000);
  Sampler b = make({.temperature = 1.0, .seed = 9}, 1000);
  Sampler c = make({.temperature = 1.0, .seed = 10}, 1000);
  int same = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const auto first = *a.sample(logits, {}, {}, i);
    EXPECT_EQ(*b.sample(logits, {}, {}, 49 - i), *a.sample(logits, {}, {}, 49 - i));
    same += first == *c.sample(logits, {}, {}, i) ? 1 : 0;
  }
  EXPECT_LT(same, 5);
}

}  // namespace
}  // namespace hone
