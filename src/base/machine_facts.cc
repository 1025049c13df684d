#include "base/machine_facts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cpuid.h>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <system_error>
#include <unistd.h>

namespace hone {
namespace {

struct Registers {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// A feature's bit: Intel's manual, volume 2A, CPUID.
struct Feature {
  const char* name;
  unsigned leaf;
  unsigned subleaf;
  unsigned Registers::* field;
  unsigned bit;
};

constexpr std::array kFeatures{
    Feature{"avx2", 7, 0, &Registers::b, 5},       Feature{"fma", 1, 0, &Registers::c, 12},
    Feature{"f16c", 1, 0, &Registers::c, 29},      Feature{"avx512f", 7, 0, &Registers::b, 16},
    Feature{"avx512dq", 7, 0, &Registers::b, 17},  Feature{"avx512bw", 7, 0, &Registers::b, 30},
    Feature{"avx512vl", 7, 0, &Registers::b, 31},  Feature{"avx512vnni", 7, 0, &Registers::c, 11},
    Feature{"avx512bf16", 7, 1, &Registers::a, 5}, Feature{"avx_vnni", 7, 1, &Registers::a, 4},
    Feature{"amx_tile", 7, 0, &Registers::d, 24},  Feature{"amx_int8", 7, 0, &Registers::d, 25},
    Feature{"amx_bf16", 7, 0, &Registers::d, 22},
};

std::string brand() {
  std::string out;
  for (unsigned leaf = 0x80000002U; leaf <= 0x80000004U; ++leaf) {
    const Registers r = cpuid(leaf);
    for (const unsigned word : {r.a, r.b, r.c, r.d}) {
      char text[4];
      std::memcpy(text, &word, sizeof text);
      for (const char c : text) {
        if (c >= 0x20 && c < 0x7f) out += c;
      }
    }
  }
  const std::size_t begin = out.find_first_not_of(' ');
  return begin == std::string::npos ? std::string()
                                    : out.substr(begin, out.find_last_not_of(' ') + 1 - begin);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> folders_of(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t colon = list.find(':');
    if (colon != 0) out.emplace_back(list.substr(0, colon));
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
  return out;
}

std::string file_system_name(std::uint64_t magic) {
  struct Name {
    std::uint64_t magic;
    const char* name;
  };
  // statfs(2).
  constexpr std::array kNames{Name{0xef53, "ext4"},      Name{0x58465342, "xfs"},
                              Name{0x9123683e, "btrfs"}, Name{0x794c7630, "overlay"},
                              Name{0x01021994, "tmpfs"}, Name{0x6969, "nfs"},
                              Name{0x65735546, "fuse"},  Name{0x01021997, "9p"},
                              Name{0xff534d42, "cifs"},  Name{0x2fc12fc1, "zfs"}};
  for (const Name& entry : kNames) {
    if (entry.magic == magic) return entry.name;
  }
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(magic));
  return text;
}

}  // namespace

ProcessorFacts processor_facts() {
  ProcessorFacts out;
  const Registers zero = cpuid(0);
  char vendor[12];
  std::memcpy(vendor, &zero.b, 4);
  std::memcpy(vendor + 4, &zero.d, 4);
  std::memcpy(vendor + 8, &zero.c, 4);
  out.vendor.assign(vendor, sizeof vendor);
  out.name = brand();
  const Registers one = cpuid(1);
  const unsigned family = (one.a >> 8) & 15U;
  out.family = static_cast<int>(family == 15 ? family + ((one.a >> 20) & 255U) : family);
  out.model = static_cast<int>(((one.a >> 4) & 15U) | ((one.a >> 16) & 15U) << 4);
  out.under_hypervisor = (one.c >> 31 & 1U) != 0;
  for (const Feature& feature : kFeatures) {
    if ((cpuid(feature.leaf, feature.subleaf).*feature.field >> feature.bit & 1U) != 0) {
      out.features.emplace_back(feature.name);
    }
  }
  out.best = detect_isa();
  return out;
}

std::string_view amx_permission_name(AmxPermission permission) {
  constexpr std::array<std::string_view, 3> kNames{"absent", "refused", "granted"};
  return kNames[static_cast<std::size_t>(permission)];
}

bool has_int8_and_bf16_tiles() {
  const unsigned d = cpuid(7).d;
  constexpr unsigned kBf16 = 1U << 22;
  constexpr unsigned kTile = 1U << 24;
  constexpr unsigned kInt8 = 1U << 25;
  return (d & (kBf16 | kTile | kInt8)) == (kBf16 | kTile | kInt8);
}

AmxPermission request_amx() {
  const bool present = (cpuid(7).d >> 24 & 1U) != 0;
  if (!present) return AmxPermission::Absent;
  constexpr long kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;     // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0 ? AmxPermission::Granted
                                                             : AmxPermission::Refused;
}

SystemFacts system_facts(const std::string& root) {
  SystemFacts out;
  out.governor = first_line(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  const std::string modes = first_line(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t begin = modes.find('[');
  const std::size_t end = modes.find(']');
  if (begin != std::string::npos && end != std::string::npos && begin < end) {
    out.huge_pages = modes.substr(begin + 1, end - begin - 1);
  }
  std::ifstream reserved(root + "/proc/sys/vm/nr_hugepages");
  reserved >> out.reserved_huge_pages;
  return out;
}

std::vector<std::string> other_copies(std::string_view path, std::string_view library_path,
                                      const std::string& self) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  std::error_code ignored;
  for (const std::string& folder : folders_of(path)) {
    const fs::path candidate = fs::path(folder) / "hone";
    if (!fs::is_regular_file(candidate, ignored)) continue;
    if (fs::equivalent(candidate, self, ignored)) break;
    out.push_back(candidate.string());
  }
  for (const std::string& folder : folders_of(library_path)) {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libhone") && name.find(".so") != std::string::npos) {
        found.push_back(entry.path().string());
      }
    }
    std::ranges::sort(found);
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

FileSpeed file_speed(const std::string& file, std::int64_t most_bytes) {
  FileSpeed out;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return out;
  struct statfs system{};
  struct stat info{};
  if (::fstatfs(descriptor, &system) == 0) {
    out.file_system = file_system_name(static_cast<std::uint64_t>(system.f_type));
  }
  if (::fstat(descriptor, &info) == 0 && info.st_size > 0) {
    const std::int64_t bytes = std::min<std::int64_t>(most_bytes, info.st_size);
    const std::int64_t first = (info.st_size - bytes) / 2;
    ::posix_fadvise(descriptor, first, bytes, POSIX_FADV_DONTNEED);
    std::vector<char> buffer(std::size_t{1} << 20);
    std::int64_t done = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (done < bytes) {
      const ssize_t got = ::pread(descriptor, buffer.data(), buffer.size(), first + done);
      if (got <= 0) break;
      done += got;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (seconds > 0) out.bytes_per_s = static_cast<double>(done) / seconds;
  }
  ::close(descriptor);
  return out;
}

}  // namespace hone
