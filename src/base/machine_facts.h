// What this machine is, beyond what a plan must know: for `hone doctor`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/isa.h"

namespace hone {

struct ProcessorFacts {
  std::string vendor;  // CPUID leaf 0: "GenuineIntel"
  std::string name;    // leaves 0x80000002..4
  int family = 0;      // with the extended parts added
  int model = 0;
  bool under_hypervisor = false;
  std::vector<std::string> features;  // of those that kernels use, the ones that the processor reports
  Isa best = Isa::Portable;
};
ProcessorFacts processor_facts();

enum class AmxPermission : std::uint8_t { Absent, Refused, Granted };
std::string_view amx_permission_name(AmxPermission permission);
// Asks the kernel for tile data (arch_prctl, ARCH_REQ_XCOMP_PERM); a second call answers the same.
AmxPermission request_amx();
// True if the processor multiplies tiles of int8 and of bf16, whatever the kernel grants.
bool has_int8_and_bf16_tiles();

// Settings of the system, as it spells them; empty where it has none. `root` stands before /sys and /proc.
struct SystemFacts {
  std::string governor;    // cpufreq of the first processor: "performance", "powersave"
  std::string huge_pages;  // transparent_hugepage/enabled, the chosen word: "madvise"
  std::int64_t reserved_huge_pages = 0;
};
SystemFacts system_facts(const std::string& root = "");

// Programs and libraries of hone that stand before or beside the running one: each `hone` of `path` and each
// libhone*.so of `library_path` (both lists of folders, as PATH and LD_LIBRARY_PATH) that is not `self`, up
// to where `self` is found.
std::vector<std::string> other_copies(std::string_view path, std::string_view library_path,
                                      const std::string& self);

// Bytes per second of reading up to `most_bytes` from the middle of a file past the page cache's copy, and
// the type of its file system. 0 where it cannot be read.
struct FileSpeed {
  double bytes_per_s = 0;
  std::string file_system;  // "ext4", "nfs", "overlay", or its number in hexadecimal
};
FileSpeed file_speed(const std::string& file, std::int64_t most_bytes);

}  // namespace hone
