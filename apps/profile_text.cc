#include <algorithm>
#include <fmt/format.h>

#include "apps/peak_table.h"
#include "apps/plural.h"
#include "apps/profile_report.h"

namespace hone {
namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f} ms", 1e3 * seconds);
}

std::string microseconds_text(double seconds) {
  return fmt::format("{:.2f} us", 1e6 * seconds);
}

double part_of(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::string percent_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string bytes_text(double bytes) {
  return human_bytes(static_cast<std::int64_t>(bytes));
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds / 1e9 : 0;
}

std::string head_text(const Profile& profile, const ProfileContext& context) {
  const PhaseProfile& prefill = profile.phase(Phase::Prefill);
  const PhaseProfile& decode = profile.phase(Phase::Decode);
  const auto rate = [](const PhaseProfile& phase) {
    return part_of(static_cast<double>(phase.tokens), phase.wall_s);
  };
  return fmt::format(
      "{:.3f} s wall: {} to start, {} prefill ({}, {:.1f} tokens/s), {} decode ({}, {:.1f} tokens/s)\n"
      "{}, {}, level {}\n",
      profile.wall_s, milliseconds(profile.phase(Phase::Start).wall_s), milliseconds(prefill.wall_s),
      counted(prefill.tokens, "token"), rate(prefill), milliseconds(decode.wall_s),
      counted(decode.steps, "step"), rate(decode), counted(context.threads, "thread"), context.isa,
      context.level);
}

std::string parts_text(const Profile& profile) {
  std::string out = fmt::format("\n{:<20}{:>14}{:>14}{:>14}{:>14}{:>9}\n", "part", "start", "prefill",
                                "decode", "sum", "of wall");
  const auto cell = [](double seconds) { return seconds > 0 ? milliseconds(seconds) : std::string("-"); };
  for (std::size_t i = 0; i < kParts; ++i) {
    const double sum = profile.parts_s(static_cast<Part>(i));
    if (sum == 0) continue;
    out += fmt::format("{:<20}{:>14}{:>14}{:>14}{:>14}{:>9}\n", part_name(static_cast<Part>(i)),
                       cell(profile.phase(Phase::Start).parts_s[i]),
                       cell(profile.phase(Phase::Prefill).parts_s[i]),
                       cell(profile.phase(Phase::Decode).parts_s[i]), milliseconds(sum),
                       percent_text(part_of(sum, profile.wall_s)));
  }
  double named = profile.covered();
  out += fmt::format("named parts are {} of the wall time; {} ({}) is between them\n", percent_text(named),
                     percent_text(1 - named), milliseconds((1 - named) * profile.wall_s));
  return out;
}

std::string phases_text(const Profile& profile, const ProfileContext& context) {
  const PhaseProfile& prefill = profile.phase(Phase::Prefill);
  const PhaseProfile& decode = profile.phase(Phase::Decode);
  std::string out = fmt::format("\n{:<28}{:>16}{:>16}\n", "", "prefill", "decode");
  const auto row = [&](std::string_view name, const auto& text) {
    out += fmt::format("{:<28}{:>16}{:>16}\n", name, text(prefill), text(decode));
  };
  row("wall time", [](const PhaseProfile& p) { return milliseconds(p.wall_s); });
  row("steps", [](const PhaseProfile& p) { return fmt::format("{}", p.steps); });
  row("launches", [](const PhaseProfile& p) { return fmt::format("{}", p.all.launches); });
  row("average kernel", [](const PhaseProfile& p) { return microseconds_text(p.all.average_seconds()); });
  row("bytes read", [](const PhaseProfile& p) { return bytes_text(p.all.bytes_read); });
  row("bytes written", [](const PhaseProfile& p) { return bytes_text(p.all.bytes_written); });
  row("threads without a tile",
      [&](const PhaseProfile& p) { return percent_text(p.all.waiting(context.threads)); });
  if (!context.no_limits.empty())
    return out + fmt::format("utilisation is not known: {}\n", context.no_limits);
  const auto of_reading = [&](double peak) {
    return [peak](const PhaseProfile& p) {
      return percent_text(part_of(part_of(p.all.bytes_read + p.all.bytes_written, peak), p.wall_s));
    };
  };
  row("of the read bandwidth", of_reading(profile.limits.read_bytes_per_s));
  row("of that over the model", of_reading(profile.limits.read_working_set_bytes_per_s));
  if (profile.limits.f32_operations_per_s <= 0) return out;
  row("utilisation",
      [](const PhaseProfile& p) { return percent_text(part_of(p.all.peak_seconds, p.wall_s)); });
  out += fmt::format("utilisation {}: {}\n", percent_text(profile.utilisation()), kUtilisation);
  const AmxPermission amx = request_amx();
  out += fmt::format(
      "measured peaks: f32 {:.0f} GFLOP/s, bf16 {}, int8 {:.0f} GOP/s, AMX bf16 {}, AMX int8 {}; "
      "read {:.1f} GB/s over {}, {:.1f} over {}; an empty launch {}\n",
      profile.limits.f32_operations_per_s / 1e9, dot_peak_text(profile.limits.bf16_operations_per_s),
      profile.limits.int8_operations_per_s / 1e9,
      amx_peak_text(profile.limits.amx_bf16_operations_per_s, "GFLOP/s", amx),
      amx_peak_text(profile.limits.amx_int8_operations_per_s, "GOP/s", amx),
      profile.limits.read_bytes_per_s / 1e9, human_bytes(kReadBytes),
      profile.limits.read_working_set_bytes_per_s / 1e9, human_bytes(profile.limits.working_set_bytes),
      microseconds_text(profile.limits.launch_s));
  return out;
}

// One table per phase; shares are of its wall time.
std::string sums_text(const std::vector<LaunchSum>& rows, std::string_view title, const Profile& profile,
                      const ProfileContext& context) {
  std::size_t width = title.size();
  for (const LaunchSum& row : rows) width = std::max(width, row.name.size());
  std::string out;
  for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
    if (profile.phase(phase).steps == 0) continue;
    out += fmt::format("\n{:<{}}  {:<8}{:>9}{:>14}{:>8}{:>12}{:>12}{:>12}{:>8}{:>9}{:>9}\n", title, width,
                       "phase", "launches", "time", "share", "average", "read", "written", "GB/s", "GOP/s",
                       "waiting");
    for (const LaunchSum& row : rows) {
      if (row.phase != phase) continue;
      out += fmt::format(
          "{:<{}}  {:<8}{:>9}{:>14}{:>8}{:>12}{:>12}{:>12}{:>8.1f}{:>9.1f}{:>9}\n",
          row.name.empty() ? "-" : row.name, width, phase_name(phase), row.launches,
          milliseconds(row.seconds), percent_text(part_of(row.seconds, profile.phase(phase).wall_s)),
          microseconds_text(row.average_seconds()), bytes_text(row.bytes_read), bytes_text(row.bytes_written),
          per_second(row.bytes_read + row.bytes_written, row.seconds),
          per_second(row.operations, row.seconds), percent_text(row.waiting(context.threads)));
    }
  }
  return out;
}

// Both phases in one line, for there are many layers.
std::string layers_text(const Profile& profile, const ProfileContext& context) {
  std::vector<std::string> names;
  for (const LaunchSum& row : profile.layers) {
    if (std::ranges::find(names, row.name) == names.end()) names.push_back(row.name);
  }
  std::size_t width = 5;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string out =
      fmt::format("\n{:<{}}{:>14}{:>8}{:>10}{:>9}{:>14}{:>8}{:>10}{:>9}\n", "layer", width, "prefill",
                  "share", "launches", "waiting", "decode", "share", "launches", "waiting");
  for (const std::string& name : names) {
    out += fmt::format("{:<{}}", name.empty() ? "-" : name, width);
    for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
      const auto row = std::ranges::find_if(
          profile.layers, [&](const LaunchSum& sum) { return sum.name == name && sum.phase == phase; });
      if (row == profile.layers.end()) {
        out += fmt::format("{:>14}{:>8}{:>10}{:>9}", "-", "-", "-", "-");
        continue;
      }
      out += fmt::format("{:>14}{:>8}{:>10}{:>9}", milliseconds(row->seconds),
                         percent_text(part_of(row->seconds, profile.phase(phase).wall_s)), row->launches,
                         percent_text(row->waiting(context.threads)));
    }
    out += "\n";
  }
  return out;
}

std::string threads_text(const Profile& profile) {
  std::string out = fmt::format("\n{:<12}{:<9}{:>14}{:>22}{:>18}\n", "thread", "phase", "busy",
                                "waiting in launches", "outside launches");
  for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
    const PhaseProfile& of = profile.phase(phase);
    if (of.steps == 0) continue;
    for (std::size_t i = 0; i < of.threads.size(); ++i) {
      const ThreadTime& time = of.threads[i];
      out += fmt::format("{:<12}{:<9}{:>14}{:>14}{:>8}{:>18}\n", i == 0 ? "0 (caller)" : fmt::format("{}", i),
                         phase_name(phase), milliseconds(time.busy_s), milliseconds(time.waiting_s),
                         percent_text(part_of(time.waiting_s, of.wall_s)), milliseconds(time.outside_s));
    }
  }
  return out;
}

// At most this many lines of memory over time: of the samples those at which a region reaches a new value.
constexpr std::size_t kSampleLines = 12;

std::string memory_text(const Profile& profile, const ProfileContext& context) {
  std::string out =
      fmt::format("\n{:<12}{:>14}{:>14}{:>14}\n", "memory", "reserved", "peak in use", "in use at end");
  for (const RegionUse& use : profile.memory) {
    out += fmt::format("{:<12}{:>14}{:>14}{:>14}\n", use.region, human_bytes(use.reserved_bytes),
                       human_bytes(use.peak_bytes), human_bytes(use.current_bytes));
  }
  out += fmt::format(
      "of dynamic, the KV cache holds {} of {}; the process: predicted {}, measured {}, of which the "
      "recording takes {}\n",
      human_bytes(profile.state_in_use_bytes), human_bytes(profile.state_bytes),
      human_bytes(context.predicted_bytes), human_bytes(context.peak_bytes),
      human_bytes(context.recording_bytes));
  const std::vector<MemorySample>& samples = profile.samples;
  if (samples.empty()) return out;
  out += fmt::format("\n{:<12}{:>14}{:>14}{:>14}\n", "at", "static", "dynamic", "workspace");
  const std::size_t lines = std::min(kSampleLines, samples.size());
  for (std::size_t i = 0; i < lines; ++i) {
    const MemorySample& sample = samples[lines < 2 ? 0 : i * (samples.size() - 1) / (lines - 1)];
    out += fmt::format("{:<12}{:>14}{:>14}{:>14}\n",
                       milliseconds(static_cast<double>(sample.at_ns - context.begin_ns) / 1e9),
                       human_bytes(sample.static_bytes), human_bytes(sample.dynamic_bytes),
                       human_bytes(sample.workspace_bytes));
  }
  return out;
}

std::string diagnosis_text(const Profile& profile, const ProfileContext& context) {
  if (!context.no_limits.empty()) return fmt::format("\nno diagnosis: {}\n", context.no_limits);
  std::string out = "\nwhat the top five are bound by\n";
  for (std::size_t i = 0; i < std::min(kDiagnosed, profile.kinds.size()); ++i) {
    const LaunchKind& kind = profile.kinds[i];
    const Diagnosis& d = kind.diagnosis;
    out += fmt::format("{}. {} of {} in {}, {} ({} of it): {}{}\n   {}\n   try: {}\n", i + 1, kind.op,
                       kind.module.empty() ? "-" : kind.module, phase_name(kind.measure.phase),
                       milliseconds(kind.measure.seconds),
                       percent_text(part_of(kind.measure.seconds, profile.phase(kind.measure.phase).wall_s)),
                       d.clear ? "" : "nothing clear, nearest ", bound_name(d.bound), d.reason, d.next);
  }
  return out;
}

}  // namespace

std::string profile_text(const Profile& profile, const ProfileContext& context) {
  std::string out = head_text(profile, context);
  out += parts_text(profile);
  out += phases_text(profile, context);
  out += sums_text(profile.ops, "op", profile, context);
  out += layers_text(profile, context);
  out += sums_text(profile.kernels, "kernel", profile, context);
  out += threads_text(profile);
  out += memory_text(profile, context);
  if (profile.dropped_zones > 0) {
    out += fmt::format("\n{} of the trace found no room and are left out of it; the sums are whole\n",
                       counted(profile.dropped_zones, "zone"));
  }
  return out + diagnosis_text(profile, context);
}

}  // namespace hone
