// Made-up launches on a machine that reads 10 GB/s, computes 100 f32 and 400 int8 GOP/s, and takes 1 us for a
// launch. Each takes one second on two threads, which are busy all the time, and is far from every bound but
// for what the test sets.
#include "profile/diagnosis.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

constexpr MachineLimits kLimits{10e9, 100e9, 400e9, 1e-6};

LaunchMeasure unbound() {
  LaunchMeasure m;
  m.launches = 1000;
  m.seconds = 1;
  m.busy_seconds = 2;
  m.threads = 2;
  m.bytes = 3e9;
  m.operations = 20e9;
  m.tiles = 64;
  return m;
}

TEST(Diagnosis, NearTheRateOfReadingIsBandwidth) {
  LaunchMeasure m = unbound();
  m.bytes = 8e9;
  m.weight_bits = 8.5;
  m.weight_share = 0.9;
  const Diagnosis d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::Bandwidth);
  EXPECT_TRUE(d.clear);
  EXPECT_DOUBLE_EQ(d.bandwidth, 0.8);
  EXPECT_NE(d.reason.find("8.0 GB/s is 80 %"), std::string::npos) << d.reason;
  EXPECT_NE(d.next.find("hone quantize"), std::string::npos) << d.next;
  m.weight_bits = 4.5;
  EXPECT_NE(diagnose(m, kLimits).next.find("have 4.5 bits already"), std::string::npos);
  m.weight_share = 0.1;
  m.reads_state = true;
  EXPECT_NE(diagnose(m, kLimits).next.find("--kv f16"), std::string::npos);
}

TEST(Diagnosis, MoreBytesThanMemoryCanSendCameFromACache) {
  LaunchMeasure m = unbound();
  m.bytes = 25e9;
  const Diagnosis d = diagnose(m, kLimits);
  EXPECT_NE(d.bound, BoundBy::Bandwidth);
  EXPECT_FALSE(d.clear);
}

TEST(Diagnosis, NearThePeakOfItsTypeIsCompute) {
  LaunchMeasure m = unbound();
  m.operations = 90e9;
  m.weight_bits = 32;
  Diagnosis d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::Compute);
  EXPECT_TRUE(d.clear);
  EXPECT_DOUBLE_EQ(d.compute, 0.9);
  EXPECT_NE(d.reason.find("90 % of the f32 peak"), std::string::npos) << d.reason;
  EXPECT_NE(d.next.find("--to q8_0"), std::string::npos) << d.next;
  m.int8 = true;  // a quarter of that peak
  d = diagnose(m, kLimits);
  EXPECT_DOUBLE_EQ(d.compute, 0.225);
  EXPECT_FALSE(d.clear);
}

TEST(Diagnosis, TheNearerRoofCounts) {
  LaunchMeasure m = unbound();
  m.bytes = 8e9;
  m.operations = 70e9;
  EXPECT_EQ(diagnose(m, kLimits).bound, BoundBy::Bandwidth);
  m.operations = 90e9;
  EXPECT_EQ(diagnose(m, kLimits).bound, BoundBy::Compute);
}

TEST(Diagnosis, ManySmallLaunchesAreLaunch) {
  LaunchMeasure m = unbound();
  m.launches = 700'000;
  m.busy_seconds = 0.6;  // an empty launch keeps nobody busy: that is no waiting
  const Diagnosis d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::Launch);
  EXPECT_TRUE(d.clear);
  EXPECT_DOUBLE_EQ(d.launch, 0.7);
  EXPECT_NEAR(d.waiting, 0, 1e-12);
  EXPECT_NE(d.reason.find("1.4 us a launch, of which an empty one takes 1.0 us"), std::string::npos)
      << d.reason;
}

TEST(Diagnosis, IdleThreadsAreWaiting) {
  LaunchMeasure m = unbound();
  m.busy_seconds = 1;  // one tile for two threads
  m.tiles = 1;
  const Diagnosis d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::Waiting);
  EXPECT_TRUE(d.clear);
  EXPECT_NEAR(d.waiting, 0.499, 1e-9);
  EXPECT_NE(d.reason.find("1.0 tiles a launch"), std::string::npos) << d.reason;
  EXPECT_NE(d.next.find("--chunk"), std::string::npos) << d.next;
  m.phase = Phase::Decode;
  EXPECT_NE(diagnose(m, kLimits).next.find("fusing"), std::string::npos);
  m.tiles = 64;
  EXPECT_NE(diagnose(m, kLimits).next.find("tiles enough"), std::string::npos);
}

TEST(Diagnosis, HalfEmptyTilesAreShape) {
  LaunchMeasure m = unbound();
  m.tokens = 50;
  m.tile_tokens = 48;
  m.token_fill = 50.0 / 96;
  Diagnosis d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::TileShape);
  EXPECT_TRUE(d.clear);
  EXPECT_NE(d.reason.find("50 tokens fill 52 % of tiles of 48"), std::string::npos) << d.reason;
  EXPECT_NE(d.next.find("--chunk 48"), std::string::npos) << d.next;
  m = unbound();
  m.columns = 20;
  m.column_fill = 20.0 / 32;
  d = diagnose(m, kLimits);
  EXPECT_EQ(d.bound, BoundBy::TileShape);
  EXPECT_NE(d.reason.find("20 columns fill 62 % of panels of 16"), std::string::npos) << d.reason;
}

TEST(Diagnosis, BelowEveryThresholdTheLargestShareIsNamedAsSuch) {
  LaunchMeasure m = unbound();
  m.bytes = 5.9e9;
  Diagnosis d = diagnose(m, kLimits);
  EXPECT_FALSE(d.clear);
  EXPECT_EQ(d.bound, BoundBy::Bandwidth);
  m.bytes = 6.1e9;
  EXPECT_TRUE(diagnose(m, kLimits).clear);
  m = unbound();
  m.busy_seconds = 2 * 0.76;
  EXPECT_FALSE(diagnose(m, kLimits).clear);
  m.busy_seconds = 2 * 0.74;
  EXPECT_EQ(diagnose(m, kLimits).bound, BoundBy::Waiting);
  EXPECT_TRUE(diagnose(m, kLimits).clear);
}

TEST(Diagnosis, AMachineWithoutAPeakHasNoShareOfIt) {
  LaunchMeasure m = unbound();
  m.operations = 1e15;
  const Diagnosis d = diagnose(m, {10e9, 0, 0, 0});
  EXPECT_EQ(d.compute, 0);
  EXPECT_EQ(d.bound, BoundBy::Bandwidth);
  EXPECT_FALSE(d.clear);
}

}  // namespace
}  // namespace hone
