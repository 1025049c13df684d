// The limits of the process, read from folders that stand for /proc and /sys.
#include "base/machine.h"

#include <gtest/gtest.h>

#include "../file/temporary_folder.h"

namespace hone {
namespace {

class ThreadLimits : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  ThreadLimit limit() { return usable_threads(folder_.path(".")); }
  hone::testing::TemporaryFolder folder_;
};

TEST_F(ThreadLimits, WithoutAQuotaAreTheAffinity) {
  EXPECT_EQ(limit().threads, usable_threads(folder_.path(".")).processors);
  EXPECT_FALSE(limit().under_quota);
  EXPECT_EQ(limit().source, "affinity " + std::to_string(limit().processors));
}

TEST_F(ThreadLimits, FollowTheInnermostQuotaOfEitherVersion) {
  write("proc/self/cgroup", "0::/pod/job\n");
  write("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(limit().under_quota);
  write("sys/fs/cgroup/pod/cpu.max", "50000 100000\n");
  EXPECT_TRUE(limit().under_quota);
  EXPECT_EQ(limit().threads, 1);
  EXPECT_EQ(limit().source, "cgroup CPU quota 0.5");
  write("proc/self/cgroup", "3:cpu,cpuacct:/job\n");
  EXPECT_FALSE(limit().under_quota);
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "25000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_TRUE(limit().under_quota);
  EXPECT_EQ(limit().source, "cgroup CPU quota 0.25");
}

// A quota between two whole numbers still stops threads that spin: it is below the affinity.
TEST_F(ThreadLimits, AQuotaBelowTheAffinityIsOneWhateverItsFloor) {
  const int processors = limit().processors;
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", std::to_string(processors * 100000 - 50000) + " 100000\n");
  EXPECT_TRUE(limit().under_quota);
  EXPECT_EQ(limit().threads, std::max(1, processors - 1));
  write("sys/fs/cgroup/job/cpu.max", std::to_string(processors * 100000) + " 100000\n");
  EXPECT_FALSE(limit().under_quota);
  EXPECT_EQ(limit().threads, processors);
}

}  // namespace
}  // namespace hone
