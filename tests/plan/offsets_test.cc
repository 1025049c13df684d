// The placement of lifetimes as tables that a person can check: lifetimes in, offsets out, the reason beside
// them.
#include "plan/offsets.h"

#include <gtest/gtest.h>
#include <random>

namespace hone {
namespace {

const Dim T = Dim::symbol('T');

struct Row {
  Dim bytes;
  int first;
  int last;
  const char* offset;
};

void expect_offsets(const std::vector<Row>& table, const Bindings& bound, std::int64_t peak) {
  std::vector<Lifetime> lives;
  for (const Row& row : table) lives.push_back({row.bytes, row.first, row.last});
  const Result<OffsetPlan> plan = plan_offsets(lives, bound);
  ASSERT_TRUE(plan.ok());
  for (std::size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(plan->offsets[i].to_string(), table[i].offset) << "row " << i;
  EXPECT_EQ(plan->peak_bytes, peak);
}

TEST(Offsets, NothingNeedsNothing) {
  const Result<OffsetPlan> plan = plan_offsets({}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->peak_bytes, 0);
  EXPECT_EQ(plan->lower_bound_bytes, 0);
}

TEST(Offsets, AChainReusesTwoPlaces) {
  // a -> b -> c -> d: each is read by the next step only.
  expect_offsets({{64, 0, 1, "0"},    // a
                  {64, 1, 2, "64"},   // b lives beside a
                  {64, 2, 3, "0"},    // a is gone
                  {64, 3, 3, "64"}},  // b is gone
                 {}, 128);
}

TEST(Offsets, SizesAreRoundedToTheAlignment) {
  // Largest first: the 65 bytes take 128 and go to the bottom.
  expect_offsets({{1, 0, 1, "128"}, {65, 0, 1, "0"}, {64, 0, 1, "192"}}, {}, 256);
}

TEST(Offsets, ALongLivedValueGoesBelowTheOthers) {
  // The residual (192 bytes) lives through everything; a and b follow each other above it.
  expect_offsets({{192, 0, 3, "0"},     // residual
                  {128, 1, 1, "192"},   // a
                  {128, 2, 2, "192"}},  // b takes a's place
                 {}, 320);
}

// Two layers of a decoder whose norm is folded: x, attention, x1 and s, mlp, the next x. No order by size,
// life or area fits x1, mlp and x into 768 bytes with s beside the first two: s stands on a tower and has to
// go first.
TEST(Offsets, AValueOnTopOfATowerGoesFirst) {
  const std::vector<Row> table{{192, 0, 1, ""},  {64, 0, 1, ""},  {192, 1, 3, ""},   {64, 1, 2, ""},
                               {384, 2, 3, ""},  {192, 3, 5, ""}, {64, 4, 5, ""},    {192, 5, 7, ""},
                               {64, 5, 6, ""},   {384, 6, 7, ""}, {192, 7, 9, ""},   {64, 8, 9, ""},
                               {192, 9, 11, ""}, {64, 9, 10, ""}, {384, 10, 11, ""}, {192, 11, 11, ""}};
  std::vector<Lifetime> lives;
  for (const Row& row : table) lives.push_back({row.bytes, row.first, row.last});
  const Result<OffsetPlan> plan = plan_offsets(lives, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->lower_bound_bytes, 768);
  EXPECT_EQ(plan->peak_bytes, 768) << plan->order;
  EXPECT_TRUE(plan->order.ends_with(", repaired")) << plan->order;
}

TEST(Offsets, FormulasFollowTheSymbol) {
  expect_offsets({{T * Dim(256), 0, 2, "512*T"},  // above the larger one that lives beside it
                  {T * Dim(512), 1, 2, "0"},      // largest first
                  {T * Dim(256), 3, 3, "0"}},     // both are gone
                 {{'T', 10}}, 7680);
}

TEST(Offsets, ASmallerSymbolNeverOverlaps) {
  // At T = 100 the square is larger than the line, at T = 1 smaller: the line's offset must follow the
  // square's size.
  const std::vector<Lifetime> lives{{T * T * Dim(64), 0, 1}, {T * Dim(256), 0, 1}, {T * Dim(64), 1, 1}};
  const Result<OffsetPlan> plan = plan_offsets(lives, {{'T', 100}});
  ASSERT_TRUE(plan.ok());
  for (const std::int64_t t : {1, 2, 3, 7, 64, 100}) {
    const Bindings at{{'T', t}};
    for (std::size_t i = 0; i < lives.size(); ++i) {
      for (std::size_t j = i + 1; j < lives.size(); ++j) {
        const std::int64_t i0 = *plan->offsets[i].evaluate(at);
        const std::int64_t j0 = *plan->offsets[j].evaluate(at);
        const std::int64_t i1 = i0 + *lives[i].bytes.evaluate(at);
        const std::int64_t j1 = j0 + *lives[j].bytes.evaluate(at);
        EXPECT_TRUE(i1 <= j0 || j1 <= i0) << "T = " << t << ", values " << i << " and " << j;
      }
    }
  }
}

TEST(Offsets, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(random() % 40);
      const auto scale = Dim(static_cast<std::int64_t>(random() % 9 + 1) * 64);
      lives.push_back({random() % 2 == 0 ? scale : scale * T, first, first + static_cast<int>(random() % 6)});
    }
    const Result<OffsetPlan> plan = plan_offsets(lives, {{'T', 16}});
    ASSERT_TRUE(plan.ok());
    EXPECT_GE(plan->peak_bytes, plan->lower_bound_bytes);
    for (const std::int64_t t : {1, 5, 16}) {
      const Bindings at{{'T', t}};
      const std::int64_t peak = *plan->peak.evaluate(at);
      for (std::size_t i = 0; i < lives.size(); ++i) {
        const std::int64_t i0 = *plan->offsets[i].evaluate(at);
        const std::int64_t i1 = i0 + *lives[i].bytes.evaluate(at);
        EXPECT_LE(i1, peak);
        for (std::size_t j = i + 1; j < lives.size(); ++j) {
          if (lives[i].first > lives[j].last || lives[j].first > lives[i].last) continue;
          const std::int64_t j0 = *plan->offsets[j].evaluate(at);
          EXPECT_TRUE(i1 <= j0 || j0 + *lives[j].bytes.evaluate(at) <= i0);
        }
      }
    }
  }
}

// At every storey the values above stand on the larger of two, each of which stands on what is below: in
// full, the formula would double.
TEST(Offsets, ATowerOfUnlikeSizesKeepsShortFormulasAndNeverOverlaps) {
  constexpr std::int64_t kStoreys = 24;
  const Dim C = Dim::symbol('C');
  std::vector<Lifetime> lives;
  for (std::int64_t storey = kStoreys; storey > 0; --storey) {
    const Dim scale(256 * storey);
    lives.push_back({scale * T, 0, 0});
    lives.push_back({scale * C, 1, 1});
    lives.push_back({scale * T - Dim(64), 0, 1});
  }
  const Result<OffsetPlan> plan = plan_offsets(lives, {{'T', 64}, {'C', 64}});
  ASSERT_TRUE(plan.ok());
  std::size_t numbers = 0;
  for (const Dim& offset : plan->offsets) {
    EXPECT_LE(offset.to_string().size(), 600U);
    numbers += offset.as_constant().value_or(0) > 0 ? 1 : 0;
  }
  EXPECT_GT(numbers, 0U);
  for (const auto& [t, c] : {std::pair{1, 1}, {1, 64}, {64, 1}, {17, 40}, {63, 64}, {64, 64}}) {
    const Bindings at{{'T', t}, {'C', c}};
    for (std::size_t i = 0; i < lives.size(); ++i) {
      const std::int64_t i0 = *plan->offsets[i].evaluate(at);
      const std::int64_t i1 = i0 + *lives[i].bytes.evaluate(at);
      EXPECT_GE(i0, 0);
      EXPECT_LE(i1, *plan->peak.evaluate(at));
      for (std::size_t j = i + 1; j < lives.size(); ++j) {
        if (lives[i].first > lives[j].last || lives[j].first > lives[i].last) continue;
        const std::int64_t j0 = *plan->offsets[j].evaluate(at);
        EXPECT_TRUE(i1 <= j0 || j0 + *lives[j].bytes.evaluate(at) <= i0)
            << "T = " << t << ", C = " << c << ", values " << i << " and " << j;
      }
    }
  }
}

TEST(Offsets, TheLowerBoundIsTheLargestLiveSet) {
  const std::vector<Lifetime> lives{{64, 0, 0}, {128, 1, 2}, {256, 2, 3}};
  const Result<OffsetPlan> plan = plan_offsets(lives, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->lower_bound_bytes, 384);  // steps 2: 128 + 256
  EXPECT_EQ(plan->peak_bytes, 384);
}

TEST(Offsets, AnUnboundSymbolIsAnError) {
  const std::vector<Lifetime> lives{{T, 0, 0}};
  EXPECT_FALSE(plan_offsets(lives, {}).ok());
}

}  // namespace
}  // namespace hone
