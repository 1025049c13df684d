#include "base/machine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <link.h>
#include <optional>
#include <sched.h>
#include <sstream>
#include <unistd.h>
#include <vector>

namespace hone {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::int64_t> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number after `key` at the start of a line.
std::optional<std::int64_t> field(const std::string& text, std::string_view key) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    if (line.starts_with(key)) return number(line.substr(key.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

// Folders of this process's cgroup, innermost first: a limit of any of them holds. v2's one hierarchy, or
// v1's of `controller`.
std::vector<std::string> cgroup_folders(std::string_view controller, const std::string& before = "") {
  std::vector<std::string> folders;
  const std::string text = read_file(before + "/proc/self/cgroup").value_or("");
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::istringstream names(controllers);
    std::string name;
    bool named = false;
    while (std::getline(names, name, ',')) named = named || name == controller;
    std::string root;
    if (controllers.empty()) root = "/sys/fs/cgroup";
    if (named) root = fmt::format("/sys/fs/cgroup/{}", controller);
    if (root.empty()) continue;
    std::string path = line.substr(second + 1);
    while (true) {
      folders.push_back(fmt::format("{}{}{}", before, root, path));
      if (path.empty() || path == "/") break;
      path = path.substr(0, path.find_last_of('/'));
    }
  }
  return folders;
}

// Allowed CPUs of the innermost quota, e.g. 1.5.
std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : cgroup_folders("cpu", root)) {
    std::optional<double> cpus;
    if (const auto text = read_file(folder + "/cpu.max")) {
      const auto quota = number(*text);
      const auto period = number(std::string_view(*text).substr(std::min(text->find(' '), text->size())));
      if (quota && period && *period > 0) cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    } else if (const auto quota_text = read_file(folder + "/cpu.cfs_quota_us")) {
      const auto quota = number(*quota_text);
      const auto period = number(read_file(folder + "/cpu.cfs_period_us").value_or(""));
      if (quota && period && *quota > 0 && *period > 0)
        cpus = static_cast<double>(*quota) / static_cast<double>(*period);
    }
    if (cpus && (!least || *cpus < *least)) least = cpus;
  }
  return least;
}

}  // namespace

ThreadLimit usable_threads(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int affinity = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) affinity = std::max(1, CPU_COUNT(&set));
  ThreadLimit limit{affinity, "affinity " + std::to_string(affinity), affinity, false};
  const std::optional<double> quota = cpu_quota(root);
  if (quota && *quota < affinity) {
    std::ostringstream text;
    text << "cgroup CPU quota " << *quota;
    limit = {std::max(1, static_cast<int>(std::floor(*quota))), text.str(), affinity, true};
  }
  return limit;
}

MemoryLimit usable_memory() {
  MemoryLimit limit{std::numeric_limits<std::int64_t>::max(), "unknown"};
  const std::string host = read_file("/proc/meminfo").value_or("");
  if (const auto kib = field(host, "MemAvailable:")) limit = {*kib * 1024, "host available (/proc/meminfo)"};
  for (const std::string& folder : cgroup_folders("memory")) {
    const bool version2 = read_file(folder + "/memory.max").has_value();
    const auto maximum =
        number(read_file(folder + (version2 ? "/memory.max" : "/memory.limit_in_bytes")).value_or(""));
    const auto current =
        number(read_file(folder + (version2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(""));
    if (!maximum || !current) continue;
    // The page cache of files can be reclaimed; it does not count against what is left.
    const std::string stat = read_file(folder + "/memory.stat").value_or("");
    const std::int64_t reclaimable =
        field(stat, version2 ? "inactive_file " : "total_inactive_file ").value_or(0) +
        field(stat, version2 ? "active_file " : "total_active_file ").value_or(0);
    const std::int64_t left = *maximum - std::max<std::int64_t>(0, *current - reclaimable);
    if (left < limit.bytes)
      limit = {std::max<std::int64_t>(0, left), "cgroup limit less use (" + folder + ")"};
  }
  return limit;
}

ResidentMemory resident_memory() {
  const std::string status = read_file("/proc/self/status").value_or("");
  return {field(status, "VmRSS:").value_or(0) * 1024, field(status, "VmHWM:").value_or(0) * 1024,
          field(status, "RssFile:").value_or(0) * 1024};
}

namespace {

// Reads one byte of each page. Outside AddressSanitizer: between its globals lie bytes that it guards.
[[gnu::no_sanitize_address]] void read_pages(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t page) {
  for (std::uintptr_t at = begin; at < end; at += page) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as integers
    (void)*reinterpret_cast<const volatile char*>(at);
  }
}

int touch_object(dl_phdr_info* info, std::size_t, void*) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0 || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    read_pages(begin, begin + segment.p_memsz, page);
  }
  return 0;
}

}  // namespace

void touch_program_pages() {
  dl_iterate_phdr(touch_object, nullptr);
}

}  // namespace hone
