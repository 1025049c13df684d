#include "base/machine_findings.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

namespace hone {
namespace {

MachineState healthy() {
  MachineState state;
  state.processor = {"GenuineIntel", "Xeon", 6, 0x8f, true, {"avx2"}, Isa::Amx};
  state.amx = AmxPermission::Granted;
  state.system = {"performance", "madvise", 0};
  state.threads_asked = 4;
  state.threads = 4;
  state.thread_source = "affinity 4";
  state.memory_bytes = std::int64_t{8} << 30;
  state.memory_source = "cgroup memory.max";
  state.model_bytes = std::int64_t{4} << 30;
  state.file_bytes = 4'000'000'000;
  state.file_speed = {2e9, "ext4"};
  return state;
}

// The findings of a healthy machine with one thing changed.
template <class Change>
std::vector<MachineFinding> with(Change change) {
  MachineState state = healthy();
  change(state);
  return machine_findings(state);
}

void expect_one(const std::vector<MachineFinding>& findings, const char* name, const char* detail,
                const char* fix) {
  ASSERT_EQ(findings.size(), 1U) << name;
  EXPECT_EQ(findings[0].name, name);
  EXPECT_NE(findings[0].detail.find(detail), std::string::npos) << findings[0].detail;
  EXPECT_NE(findings[0].fix.find(fix), std::string::npos) << findings[0].fix;
}

TEST(MachineFindings, AHealthyMachineHasNone) {
  EXPECT_TRUE(machine_findings(healthy()).empty());
  // A processor without tiles.
  EXPECT_TRUE(with([](MachineState& s) {
                s.processor = {"AuthenticAMD", "EPYC", 26, 2, true, {"avx2"}, Isa::Avx512};
                s.amx = AmxPermission::Absent;
              }).empty());
  EXPECT_TRUE(with([](MachineState& s) { s.system = {"", "", 0}; }).empty());
}

TEST(MachineFindings, EachPitIsFoundWithItsMend) {
  expect_one(with([](MachineState& s) { s.processor.best = Isa::Avx2; }), "isa-masked",
             "the hypervisor masks the rest", "host-passthrough");
  expect_one(with([](MachineState& s) { s.isa_asked = Isa::Portable; }), "isa-forced", "asks for portable",
             "unset HONE_ISA");
  EXPECT_TRUE(with([](MachineState& s) { s.isa_asked = s.processor.best; }).empty());
  expect_one(with([](MachineState& s) {
               s.amx = AmxPermission::Refused;
               s.processor.best = Isa::Avx512;
             }),
             "amx-refused", "tile data", "seccomp");
  expect_one(with([](MachineState& s) {
               s.amx = AmxPermission::Absent;
               s.processor.best = Isa::Avx512;
             }),
             "isa-masked", "has amx", "host-passthrough");
  expect_one(with([](MachineState& s) { s.system.governor = "powersave"; }), "governor", "powersave",
             "cpupower frequency-set -g performance");
  expect_one(with([](MachineState& s) { s.system.huge_pages = "never"; }), "huge-pages", "off", "madvise");
  expect_one(with([](MachineState& s) { s.threads = 2; }), "too-many-threads", "4 threads", "--threads 2");
  expect_one(with([](MachineState& s) { s.memory_bytes = std::int64_t{2} << 30; }), "memory-limit",
             "needs 4.00 GiB and 2.00 GiB may be used (cgroup memory.max)", "--memory 5g");
  expect_one(with([](MachineState& s) { s.file_speed = {100e6, "nfs"}; }), "slow-disk",
             "100 MB/s (nfs): loading it takes 40 s", "cp MODEL");
  expect_one(with([](MachineState& s) { s.other_copies = {"/usr/bin/hone"}; }), "another-copy",
             "/usr/bin/hone", "first in PATH");
}

TEST(MachineFindings, ProcessorsAreKnownByTheirNumbers) {
  const auto isa = [](const char* vendor, int family, int model) {
    return known_isa({vendor, "", family, model, false, {}, Isa::Portable});
  };
  EXPECT_EQ(isa("GenuineIntel", 6, 0x8f), Isa::Amx);
  EXPECT_EQ(isa("GenuineIntel", 6, 0x55), Isa::Avx2);
  EXPECT_EQ(isa("AuthenticAMD", 25, 0x11), Isa::Avx512);
  EXPECT_EQ(isa("AuthenticAMD", 25, 0x01), Isa::Avx2);
  EXPECT_EQ(isa("AuthenticAMD", 26, 0x02), Isa::Avx512);
  EXPECT_EQ(isa("GenuineIntel", 25, 0x11), std::nullopt);
}

class FoldersTest : public ::testing::Test {
 protected:
  FoldersTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-doctor-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  ~FoldersTest() override { std::filesystem::remove_all(root_); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  std::string folder(const char* name) const { return (root_ / name).string(); }
  std::filesystem::path root_;
};

TEST_F(FoldersTest, SystemSettingsAreReadAsTheySpellThemselves) {
  const SystemFacts none = system_facts(root_.string());
  EXPECT_EQ(none.governor, "");
  EXPECT_EQ(none.huge_pages, "");
  EXPECT_EQ(none.reserved_huge_pages, 0);
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  write("proc/sys/vm/nr_hugepages", "12\n");
  const SystemFacts facts = system_facts(root_.string());
  EXPECT_EQ(facts.governor, "powersave");
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.reserved_huge_pages, 12);
}

TEST_F(FoldersTest, CopiesBeforeTheRunningOne) {
  const std::string first = write("a/hone", "x");
  const std::string self = write("b/hone", "x");
  write("c/hone", "x");
  const std::string library = write("lib/libhone.so.1", "x");
  write("lib/other.so", "x");
  const std::string path = folder("none") + ":" + folder("a") + "::" + folder("b") + ":" + folder("c");
  EXPECT_EQ(other_copies(path, "", self), std::vector<std::string>{first});
  EXPECT_EQ(other_copies(folder("b"), folder("lib"), self), std::vector<std::string>{library});
  EXPECT_TRUE(other_copies(folder("b") + ":" + folder("a"), folder("a"), self).empty());
}

TEST_F(FoldersTest, AFileIsTimed) {
  const FileSpeed speed = file_speed(write("file", std::string(100'000, 'x')), 1 << 20);
  EXPECT_GT(speed.bytes_per_s, 0);
  EXPECT_FALSE(speed.file_system.empty());
  EXPECT_EQ(file_speed(folder("missing"), 1 << 20).bytes_per_s, 0);
}

TEST(MachineFacts, TheProcessorHasANameAndWhatItsLevelNeeds) {
  const ProcessorFacts facts = processor_facts();
  EXPECT_EQ(facts.vendor.size(), 12U);
  const auto has = [&](const char* name) {
    return std::find(facts.features.begin(), facts.features.end(), name) != facts.features.end();
  };
  EXPECT_TRUE(facts.best < Isa::Avx2 || (has("avx2") && has("fma") && has("f16c")));
  EXPECT_TRUE(facts.best < Isa::Avx512 || (has("avx512f") && has("avx512vnni") && has("avx512bf16")));
  EXPECT_EQ(request_amx(), request_amx());
}

}  // namespace
}  // namespace hone
