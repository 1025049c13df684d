#include "profile/recorder.h"

#include <gtest/gtest.h>
#include <set>

namespace hone {
namespace {

// A launch in which thread t works from 10 + t to 20 + 5t, on the clock of the recording.
void add_launch(Recorder& recorder, std::size_t launch, std::int64_t begin, std::int64_t end) {
  for (int thread = 0; thread < recorder.threads(); ++thread) {
    recorder.spans()[thread] = {begin + 10 + thread, begin + 20 + 5 * thread};
  }
  recorder.add_launch(launch, begin, end);
}

std::int64_t launch_parts(const Recorder& recorder, Phase phase) {
  return recorder.part_ns(phase, Part::SetUp) + recorder.part_ns(phase, Part::Kernels) +
         recorder.part_ns(phase, Part::Barrier);
}

TEST(Recorder, ALaunchFallsIntoSetUpKernelsAndBarrier) {
  Recorder recorder;
  recorder.reserve_launches(3, 2);
  recorder.begin_phase(Phase::Prefill);
  add_launch(recorder, 1, 1000, 1030);
  add_launch(recorder, 1, 1030, 1070);
  EXPECT_EQ(recorder.part_ns(Phase::Prefill, Part::SetUp), 20);
  EXPECT_EQ(recorder.part_ns(Phase::Prefill, Part::Kernels), 20);
  EXPECT_EQ(recorder.part_ns(Phase::Prefill, Part::Barrier), 30);
  const LaunchTotal& total = recorder.launch(Phase::Prefill, 1);
  EXPECT_EQ(total.count, 2);
  EXPECT_EQ(total.nanoseconds, 70);
  EXPECT_EQ(launch_parts(recorder, Phase::Prefill), total.nanoseconds);
  EXPECT_EQ(recorder.busy_ns(Phase::Prefill, 1, 0), 20);
  EXPECT_EQ(recorder.busy_ns(Phase::Prefill, 1, 1), 28);
  EXPECT_EQ(recorder.launch(Phase::Prefill, 0).count, 0);
  EXPECT_EQ(recorder.launch(Phase::Decode, 1).count, 0);
}

TEST(Recorder, ALaunchWithoutTilesIsSetUpAlone) {
  Recorder recorder;
  recorder.reserve_launches(1, 2);
  recorder.begin_phase(Phase::Decode);
  recorder.add_launch(0, 500, 507);  // run() sets the spans to {0, 0}
  EXPECT_EQ(recorder.part_ns(Phase::Decode, Part::SetUp), 7);
  EXPECT_EQ(recorder.part_ns(Phase::Decode, Part::Kernels), 0);
  EXPECT_EQ(recorder.part_ns(Phase::Decode, Part::Barrier), 0);
}

TEST(Recorder, PhasesFollowEachOtherAndAddUpToTheWall) {
  Recorder recorder;
  recorder.add_part(Part::Open, 0, 5);
  recorder.begin_phase(Phase::Prefill);
  recorder.add_part(Part::Bind, 5, 12);
  recorder.begin_phase(Phase::Decode);
  recorder.add_part(Part::Bind, 20, 21);
  recorder.finish();
  EXPECT_EQ(recorder.begin_ns(Phase::Prefill), recorder.begin_ns() + recorder.wall_ns(Phase::Start));
  EXPECT_EQ(recorder.begin_ns(Phase::Decode),
            recorder.begin_ns(Phase::Prefill) + recorder.wall_ns(Phase::Prefill));
  EXPECT_LE(recorder.begin_ns() + recorder.wall_ns(), now_nanoseconds());
  EXPECT_EQ(recorder.part_ns(Phase::Start, Part::Open), 5);
  EXPECT_EQ(recorder.part_ns(Phase::Prefill, Part::Bind), 7);
  EXPECT_EQ(recorder.part_ns(Phase::Decode, Part::Bind), 1);
}

TEST(Recorder, WhatFindsNoRoomIsCountedAndTheSumsStayWhole) {
  Recorder recorder;
  recorder.reserve_launches(1, 2);
  recorder.reserve_trace(1, 4);
  recorder.begin_phase(Phase::Decode);
  for (int i = 0; i < 5; ++i) add_launch(recorder, 0, 100 * i, 100 * i + 50);
  recorder.add_step({});
  recorder.add_step({});
  // Three zones a launch for the caller, one for the worker.
  EXPECT_EQ(recorder.zones(0).size(), 4U);
  EXPECT_EQ(recorder.zones(1).size(), 4U);
  EXPECT_EQ(recorder.dropped_zones(), 15 - 4 + 5 - 4);
  EXPECT_EQ(recorder.steps().size(), 1U);
  EXPECT_EQ(recorder.dropped_steps(), 1);
  EXPECT_EQ(recorder.launch(Phase::Decode, 0).count, 5);
  EXPECT_EQ(recorder.launch(Phase::Decode, 0).nanoseconds, 250);
  EXPECT_EQ(recorder.busy_ns(Phase::Decode, 0, 0), 50);
}

TEST(Recorder, WithoutRoomForATraceNothingIsDropped) {
  Recorder recorder;
  recorder.reserve_launches(1, 2);
  recorder.reserve_trace(8, 0);
  recorder.begin_phase(Phase::Decode);
  add_launch(recorder, 0, 0, 50);
  EXPECT_TRUE(recorder.zones(0).empty());
  EXPECT_EQ(recorder.dropped_zones(), 0);
}

TEST(Recorder, AStepHasThePhaseInWhichItRan) {
  Recorder recorder;
  recorder.reserve_trace(2, 0);
  recorder.begin_phase(Phase::Prefill);
  recorder.add_step({.begin_ns = 1, .end_ns = 2, .tokens = 7});
  recorder.begin_phase(Phase::Decode);
  recorder.add_step({.begin_ns = 3, .end_ns = 4, .tokens = 1});
  ASSERT_EQ(recorder.steps().size(), 2U);
  EXPECT_EQ(recorder.steps()[0].phase, Phase::Prefill);
  EXPECT_EQ(recorder.steps()[0].tokens, 7);
  EXPECT_EQ(recorder.steps()[1].phase, Phase::Decode);
}

TEST(PartClock, MarksAreWithoutGapUntilARestart) {
  Recorder recorder;
  recorder.reserve_launches(1, 1);
  recorder.reserve_trace(1, 8);
  PartClock clock(&recorder);
  clock.mark(Part::Open);
  clock.mark(Part::Compile);
  clock.restart();
  clock.mark(Part::Tokenizer);
  const std::span<const Zone> zones = recorder.zones(0);
  ASSERT_EQ(zones.size(), 3U);
  EXPECT_EQ(zones[0].end_ns, zones[1].begin_ns);
  EXPECT_LE(zones[1].end_ns, zones[2].begin_ns);
  EXPECT_EQ(zones[1].name, static_cast<std::uint32_t>(Part::Compile));
  PartClock(nullptr).mark(Part::Open);  // measures nothing
}

TEST(Recorder, EveryPartAndPhaseHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kParts; ++i) names.insert(part_name(static_cast<Part>(i)));
  for (const Phase phase : kPhases) names.insert(phase_name(phase));
  EXPECT_EQ(names.size(), kParts + kPhases.size());
  EXPECT_FALSE(names.contains(""));
  EXPECT_FALSE(names.contains("other"));
}

}  // namespace
}  // namespace hone
