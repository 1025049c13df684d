// hone doctor: what this machine offers, what is wrong with it, and what mends that.
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>

#include "apps/peak_table.h"
#include "apps/verb.h"
#include "base/machine.h"
#include "base/machine_findings.h"
#include "engine/compile.h"
#include "engine/memory_statement.h"
#include "file/open.h"
#include "kernels/peaks.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

struct DoctorFlags {
  std::string model;
  std::int64_t threads = 0;
  std::int64_t context = 0;
  bool skip_peaks = false;
  bool json = false;
};

constexpr std::int64_t kProbedBytes = std::int64_t{128} << 20;

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread is started
  return value == nullptr ? "" : value;
}

Status add_model(const DoctorFlags& flags, MachineState& state) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  EngineOptions options;
  options.context = flags.context;
  const CompiledModel model = HONE_TRY(compile(checkpoint, options));
  const TokenizerMemory tokenizer = HONE_TRY(tokenizer_memory(checkpoint));
  state.model_bytes = memory_statement(model.plan, checkpoint, tokenizer).total_bytes;
  for (const std::shared_ptr<MappedFile>& file : checkpoint.files) {
    state.file_bytes += static_cast<std::int64_t>(file->size());
  }
  if (checkpoint.files.empty()) return {};
  state.file = checkpoint.files[0]->path();
  state.file_speed = file_speed(state.file, kProbedBytes);
  return {};
}

Result<MachineState> examine(const DoctorFlags& flags) {
  MachineState state;
  state.processor = processor_facts();
  state.isa_asked = HONE_TRY(asked_isa(""));
  state.amx = request_amx();
  state.system = system_facts();
  state.threads_asked = static_cast<int>(flags.threads);
  ThreadLimit threads = usable_threads();
  state.threads = threads.threads;
  state.thread_source = std::move(threads.source);
  MemoryLimit memory = usable_memory();
  state.memory_bytes = memory.bytes;
  state.memory_source = std::move(memory.source);
  std::error_code ignored;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  state.other_copies = other_copies(environment("PATH"), environment("LD_LIBRARY_PATH"), self);
  if (!flags.model.empty()) HONE_TRY(add_model(flags, state));
  return state;
}

Json as_json(const MachineState& state, const Peaks* peaks) {
  Json findings = Json::array();
  for (const MachineFinding& finding : machine_findings(state)) {
    findings.push_back({{"name", finding.name}, {"detail", finding.detail}, {"fix", finding.fix}});
  }
  Json levels = Json::array();
  for (const Isa isa : kIsaLevels) {
    if (isa <= state.processor.best) levels.push_back(isa_name(isa));
  }
  Json out{{"isa", isa_name(state.isa_asked.value_or(state.processor.best))},
           {"isa_levels", std::move(levels)},
           {"processor", state.processor.name},
           {"features", state.processor.features},
           {"hypervisor", state.processor.under_hypervisor},
           {"amx", amx_permission_name(state.amx)},
           {"threads", state.threads},
           {"threads_source", state.thread_source},
           {"memory_bytes", state.memory_bytes},
           {"memory_source", state.memory_source},
           {"governor", state.system.governor},
           {"transparent_huge_pages", state.system.huge_pages},
           {"reserved_huge_pages", state.system.reserved_huge_pages},
           {"devices", {"cpu"}}};
  out["peaks"] = peaks == nullptr ? Json::object() : measured_peaks_json(*peaks);
  if (state.model_bytes > 0) {
    out["model"] = {{"needs_bytes", state.model_bytes},
                    {"file_bytes", state.file_bytes},
                    {"read_bytes_per_s", state.file_speed.bytes_per_s},
                    {"file_system", state.file_speed.file_system}};
  }
  out["findings"] = std::move(findings);
  return out;
}

std::string or_none(const std::string& text) {
  return text.empty() ? "not told by this system" : text;
}

std::string as_text(const MachineState& state, const Peaks* peaks) {
  const ProcessorFacts& processor = state.processor;
  std::string out = fmt::format("processor      {}{}\n", processor.name,
                                processor.under_hypervisor ? ", in a virtual machine" : "");
  out += fmt::format("features       {}\n", fmt::join(processor.features, " "));
  out += fmt::format("isa            {} is used{}; AMX tile data {}\n",
                     isa_name(state.isa_asked.value_or(processor.best)), state.isa_asked ? " (HONE_ISA)" : "",
                     amx_permission_name(state.amx));
  out += fmt::format("threads        {} ({})\n", state.threads, state.thread_source);
  out += fmt::format("memory         {} ({})\n", human_bytes(state.memory_bytes), state.memory_source);
  out += fmt::format("governor       {}\n", or_none(state.system.governor));
  out += fmt::format("huge pages     transparent: {}; reserved: {}\n", or_none(state.system.huge_pages),
                     state.system.reserved_huge_pages);
  if (peaks != nullptr) out += "\n" + peak_table(*peaks, {}) + "\n";
  if (state.model_bytes > 0) {
    out += fmt::format("model          needs {}; its file is read at {:.0f} MB/s ({})\n",
                       human_bytes(state.model_bytes), state.file_speed.bytes_per_s / 1e6,
                       state.file_speed.file_system);
  }
  const std::vector<MachineFinding> findings = machine_findings(state);
  if (findings.empty()) return out + "\nnothing to mend\n";
  for (const MachineFinding& finding : findings) {
    out += fmt::format("\n{}: {}\n  mend it: {}\n", finding.name, finding.detail, finding.fix);
  }
  return out;
}

Status run(const DoctorFlags& flags) {
  const MachineState state = HONE_TRY(examine(flags));
  Peaks peaks;
  if (!flags.skip_peaks) {
    const std::unique_ptr<ThreadPool> pool =
        HONE_TRY(ThreadPool::create(state.threads, !usable_threads().under_quota));
    peaks = HONE_TRY(measure_peaks(*pool, state.processor.best));
  }
  const Peaks* shown = flags.skip_peaks ? nullptr : &peaks;
  if (flags.json) {
    print_json(as_json(state, shown));
  } else {
    print_answer(as_text(state, shown));
  }
  return {};
}

}  // namespace

Verb add_doctor(const CommandLine& line) {
  const Command verb = line.add_verb("doctor", "what this machine offers, what is wrong and what mends it");
  auto flags = std::make_shared<DoctorFlags>();
  verb.option("MODEL", flags->model, "a model that should run here");
  verb.option("--threads", flags->threads, "threads that would be asked for")
      .within(0, ThreadPool::kMaxThreads, kZeroIsDefault);
  const Flag context =
      verb.option("--ctx", flags->context, "tokens of a sequence").within(0, kNoLimit, kZeroIsDefault);
  verb.flag("--no-peaks", flags->skip_peaks, "measures nothing");
  verb.flag("--json", flags->json, "one JSON document on stdout");
  return {verb, &flags->json, [flags, context]() -> Status {
            if (context.given() && flags->model.empty()) return goes_with("--ctx", "MODEL");
            return run(*flags);
          }};
}

}  // namespace hone
