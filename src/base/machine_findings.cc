#include "base/machine_findings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>
#include <utility>

namespace hone {
namespace {

// Family and model numbers of processors, with the level that each has (the vendors' lists of CPUID
// signatures).
struct KnownProcessor {
  std::string_view vendor;
  int family;
  int first_model;
  int last_model;
  Isa isa;
};

constexpr std::array kKnown{
    KnownProcessor{"GenuineIntel", 6, 0x8f, 0x8f, Isa::Amx},      // Sapphire Rapids
    KnownProcessor{"GenuineIntel", 6, 0xcf, 0xcf, Isa::Amx},      // Emerald Rapids
    KnownProcessor{"GenuineIntel", 6, 0xad, 0xae, Isa::Amx},      // Granite Rapids
    KnownProcessor{"GenuineIntel", 6, 0x55, 0x55, Isa::Avx2},     // Skylake and Cascade Lake: no BF16
    KnownProcessor{"GenuineIntel", 6, 0x6a, 0x6c, Isa::Avx2},     // Ice Lake: no BF16
    KnownProcessor{"AuthenticAMD", 25, 0x10, 0x1f, Isa::Avx512},  // Zen 4
    KnownProcessor{"AuthenticAMD", 25, 0x60, 0x7f, Isa::Avx512},
    KnownProcessor{"AuthenticAMD", 25, 0xa0, 0xaf, Isa::Avx512},
    KnownProcessor{"AuthenticAMD", 26, 0x00, 0xff, Isa::Avx512},  // Zen 5
    KnownProcessor{"AuthenticAMD", 25, 0x00, 0x0f, Isa::Avx2},    // Zen 3
    KnownProcessor{"AuthenticAMD", 23, 0x00, 0xff, Isa::Avx2},    // Zen, Zen 2
};

double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(1U << 30U);
}

void check_processor(const MachineState& state, std::vector<MachineFinding>& out) {
  const ProcessorFacts& processor = state.processor;
  const std::optional<Isa> known = known_isa(processor);
  // Where the kernel refuses tiles, that is the finding below.
  const Isa reported =
      state.amx == AmxPermission::Refused ? std::max(processor.best, Isa::Amx) : processor.best;
  if (known && *known > reported) {
    out.push_back({"isa-masked",
                   fmt::format("{} has {}, but this system reports {} at most{}", processor.name,
                               isa_name(*known), isa_name(processor.best),
                               processor.under_hypervisor ? " (the hypervisor masks the rest)" : ""),
                   "give the virtual machine the host's processor: qemu -cpu host, libvirt <cpu "
                   "mode='host-passthrough'/>"});
  }
  if (state.isa_asked && *state.isa_asked != processor.best) {
    const bool lacks = *state.isa_asked > processor.best;
    out.push_back({"isa-forced",
                   fmt::format("HONE_ISA asks for {}, {} {}", isa_name(*state.isa_asked),
                               lacks ? "which this processor lacks: nothing will run; it has"
                                     : "though this processor has",
                               isa_name(processor.best)),
                   "unset HONE_ISA"});
  }
  if (state.amx == AmxPermission::Refused) {
    out.push_back({"amx-refused", "the processor has AMX, and the kernel refuses tile data to this process",
                   "allow arch_prctl(ARCH_REQ_XCOMP_PERM) in the container's seccomp profile: docker run "
                   "--security-opt seccomp=unconfined shows whether that is it"});
  }
  if (state.system.governor == "powersave" || state.system.governor == "conservative") {
    out.push_back({"governor", fmt::format("the frequency governor is {}", state.system.governor),
                   "sudo cpupower frequency-set -g performance"});
  }
  if (state.system.huge_pages == "never") {
    out.push_back({"huge-pages", "transparent huge pages are off: more page-table walks for large weights",
                   "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"});
  }
}

void check_limits(const MachineState& state, std::vector<MachineFinding>& out) {
  if (state.threads_asked > state.threads) {
    out.push_back(
        {"too-many-threads",
         fmt::format("{} threads are asked for and {} may run ({}): they would wait for each other",
                     state.threads_asked, state.threads, state.thread_source),
         fmt::format("--threads {}, or more processors for this process: taskset, docker run --cpus",
                     state.threads)});
  }
  if (state.model_bytes > state.memory_bytes) {
    out.push_back(
        {"memory-limit",
         fmt::format("the model needs {:.2f} GiB and {:.2f} GiB may be used ({})", gib(state.model_bytes),
                     gib(state.memory_bytes), state.memory_source),
         fmt::format("docker run --memory {0}g, or systemd-run -p MemoryMax={0}G; or a smaller --ctx",
                     static_cast<std::int64_t>(std::ceil(gib(state.model_bytes) * 1.1)))});
  }
}

}  // namespace

std::optional<Isa> known_isa(const ProcessorFacts& processor) {
  for (const KnownProcessor& known : kKnown) {
    if (known.vendor == processor.vendor && known.family == processor.family &&
        processor.model >= known.first_model && processor.model <= known.last_model) {
      return known.isa;
    }
  }
  return std::nullopt;
}

std::vector<MachineFinding> machine_findings(const MachineState& state) {
  std::vector<MachineFinding> out;
  check_processor(state, out);
  check_limits(state, out);
  if (state.file_speed.bytes_per_s > 0 && state.file_speed.bytes_per_s < kSlowFileBytesPerSecond) {
    out.push_back({"slow-disk",
                   fmt::format("{} is read at {:.0f} MB/s ({}): loading it takes {:.0f} s", state.file,
                               state.file_speed.bytes_per_s / 1e6, state.file_speed.file_system,
                               static_cast<double>(state.file_bytes) / state.file_speed.bytes_per_s),
                   "copy the model to a local disk: cp MODEL /var/tmp/"});
  }
  if (!state.other_copies.empty()) {
    out.push_back(
        {"another-copy",
         fmt::format("another hone comes first in the search path: {}", fmt::join(state.other_copies, ", ")),
         "remove it, or put this one's folder first in PATH and leave LD_LIBRARY_PATH unset"});
  }
  return out;
}

}  // namespace hone
