#include <algorithm>
#include <cmath>

#include "apps/peak_table.h"
#include "apps/profile_report.h"

namespace hone {
namespace {

double over(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

std::int64_t whole(double number) {
  return std::llround(number);
}

Json sums_json(const std::vector<LaunchSum>& rows, const char* key, const Profile& profile,
               const ProfileContext& context) {
  Json out = Json::array();
  for (const LaunchSum& row : rows) {
    out.push_back({{key, row.name},
                   {"phase", phase_name(row.phase)},
                   {"launches", row.launches},
                   {"total_s", row.seconds},
                   {"share", over(row.seconds, profile.phase(row.phase).wall_s)},
                   {"average_s", row.average_seconds()},
                   {"bytes_read", whole(row.bytes_read)},
                   {"bytes_written", whole(row.bytes_written)},
                   {"operations", whole(row.operations)},
                   {"waiting", row.waiting(context.threads)}});
  }
  return out;
}

Json parts_json(const Profile& profile) {
  Json out = Json::array();
  for (std::size_t i = 0; i < kParts; ++i) {
    const auto part = static_cast<Part>(i);
    Json row{{"name", part_name(part)}};
    for (const Phase phase : kPhases) {
      row[std::string(phase_name(phase)) + "_s"] = profile.phase(phase).parts_s[i];
    }
    row["total_s"] = profile.parts_s(part);
    row["share"] = over(profile.parts_s(part), profile.wall_s);
    out.push_back(std::move(row));
  }
  return out;
}

// null where no peak is known.
Json utilisation_of(double peak_seconds, double wall_s, const Profile& profile) {
  if (profile.limits.f32_operations_per_s <= 0) return nullptr;
  return over(peak_seconds, wall_s);
}

Json phases_json(const Profile& profile, const ProfileContext& context) {
  Json out = Json::array();
  for (const Phase phase : kPhases) {
    const PhaseProfile& row = profile.phase(phase);
    Json document{{"phase", phase_name(phase)}, {"wall_s", row.wall_s}};
    if (phase != Phase::Start) {
      document["tokens"] = row.tokens;
      document["tokens_per_s"] = over(static_cast<double>(row.tokens), row.wall_s);
      document["steps"] = row.steps;
      document["launches"] = row.all.launches;
      document["bytes_read"] = whole(row.all.bytes_read);
      document["bytes_written"] = whole(row.all.bytes_written);
      document["average_kernel_s"] = row.all.average_seconds();
      document["waiting"] = row.all.waiting(context.threads);
      document["utilisation"] = utilisation_of(row.all.peak_seconds, row.wall_s, profile);
    }
    out.push_back(std::move(document));
  }
  return out;
}

Json threads_json(const Profile& profile) {
  Json out = Json::array();
  for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
    const std::vector<ThreadTime>& threads = profile.phase(phase).threads;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      out.push_back({{"thread", i},
                     {"phase", phase_name(phase)},
                     {"busy_s", threads[i].busy_s},
                     {"waiting_s", threads[i].waiting_s},
                     {"outside_s", threads[i].outside_s}});
    }
  }
  return out;
}

Json memory_json(const Profile& profile) {
  Json out = Json::array();
  for (const RegionUse& use : profile.memory) {
    out.push_back({{"region", use.region},
                   {"reserved_bytes", use.reserved_bytes},
                   {"peak_bytes", use.peak_bytes},
                   {"current_bytes", use.current_bytes}});
  }
  return out;
}

Json samples_json(const Profile& profile, const ProfileContext& context) {
  Json out = Json::array();
  for (const MemorySample& sample : profile.samples) {
    out.push_back({{"at_s", static_cast<double>(sample.at_ns - context.begin_ns) / 1e9},
                   {"static_bytes", sample.static_bytes},
                   {"dynamic_bytes", sample.dynamic_bytes},
                   {"workspace_bytes", sample.workspace_bytes}});
  }
  return out;
}

Json diagnosis_json(const Profile& profile, const ProfileContext& context) {
  Json out = Json::array();
  if (!context.no_limits.empty()) return out;
  for (std::size_t i = 0; i < std::min(kDiagnosed, profile.kinds.size()); ++i) {
    const LaunchKind& kind = profile.kinds[i];
    const Diagnosis& d = kind.diagnosis;
    out.push_back({{"op", kind.op},
                   {"module", kind.module},
                   {"kernel", kind.kernel},
                   {"phase", phase_name(kind.measure.phase)},
                   {"total_s", kind.measure.seconds},
                   {"share", over(kind.measure.seconds, profile.phase(kind.measure.phase).wall_s)},
                   {"bound", bound_name(d.bound)},
                   {"clear", d.clear},
                   {"reason", d.reason},
                   {"next", d.next},
                   {"bandwidth", d.bandwidth},
                   {"compute", d.compute},
                   {"launch", d.launch},
                   {"waiting", d.waiting},
                   {"shape", d.shape}});
  }
  return out;
}

Json peaks_json(const Profile& profile, const ProfileContext& context) {
  if (!context.no_limits.empty()) return nullptr;
  return {{"read_bytes_per_s", profile.limits.read_bytes_per_s},
          {"read_working_set_bytes_per_s", profile.limits.read_working_set_bytes_per_s},
          {"working_set_bytes", profile.limits.working_set_bytes},
          {"fma_flops_per_s", profile.limits.f32_operations_per_s},
          {"bf16_flops_per_s", profile.limits.bf16_operations_per_s},
          {"int8_ops_per_s", profile.limits.int8_operations_per_s},
          {"amx_bf16_flops_per_s", peak_or_null(profile.limits.amx_bf16_operations_per_s)},
          {"amx_int8_ops_per_s", peak_or_null(profile.limits.amx_int8_operations_per_s)},
          {"launch_s", profile.limits.launch_s}};
}

}  // namespace

Json profile_json(const Profile& profile, const ProfileContext& context) {
  const LaunchSum all = profile.launches();
  const double wall = profile.phase(Phase::Prefill).wall_s + profile.phase(Phase::Decode).wall_s;
  return {{"wall_s", profile.wall_s},
          {"launches", all.launches},
          {"bytes_read", whole(all.bytes_read)},
          {"bytes_written", whole(all.bytes_written)},
          {"average_kernel_s", all.average_seconds()},
          {"utilisation", utilisation_of(all.peak_seconds, wall, profile)},
          {"utilisation_definition", kUtilisation},
          {"covered", profile.covered()},
          {"model", context.model},
          {"thread_count", context.threads},
          {"isa", context.isa},
          {"level", context.level},
          {"prompt_tokens", context.prompt_tokens},
          {"parts", parts_json(profile)},
          {"phases", phases_json(profile, context)},
          {"ops", sums_json(profile.ops, "op", profile, context)},
          {"layers", sums_json(profile.layers, "layer", profile, context)},
          {"kernels", sums_json(profile.kernels, "kernel", profile, context)},
          {"threads", threads_json(profile)},
          {"memory", memory_json(profile)},
          {"memory_samples", samples_json(profile, context)},
          {"predicted_bytes", context.predicted_bytes},
          {"peak_bytes", context.peak_bytes},
          {"recording_bytes", context.recording_bytes},
          {"peaks", peaks_json(profile, context)},
          {"diagnosis", diagnosis_json(profile, context)},
          {"dropped_zones", profile.dropped_zones}};
}

}  // namespace hone
