// What this process may use of the machine: threads and memory, container limits included, each with its
// source.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

struct ThreadLimit {
  int threads = 1;           // min(affinity, floor(cpu quota)), at least 1
  std::string source;        // "affinity 2", "cgroup CPU quota 1.5"
  int processors = 1;        // affinity
  bool under_quota = false;  // the quota is below the affinity
};
// `root` stands before /proc and /sys.
ThreadLimit usable_threads(const std::string& root = "");

struct MemoryLimit {
  std::int64_t bytes = 0;  // min(host available, cgroup limit - use that cannot be reclaimed)
  std::string source;
};
MemoryLimit usable_memory();

// Resident memory of this process, from /proc/self/status, in bytes; 0 where that cannot be read.
struct ResidentMemory {
  std::int64_t now = 0;   // VmRSS
  std::int64_t peak = 0;  // VmHWM
  std::int64_t file = 0;  // RssFile: pages of mapped files, which the system takes back where it needs them
};
ResidentMemory resident_memory();

// Reads every page of the program's code and constants once, so that they count as resident before a
// measurement and cost no page fault in the first token.
void touch_program_pages();

}  // namespace hone
