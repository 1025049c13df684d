// What a recording says of a session's run: the recorded times joined with the plan's bytes and operations.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/session.h"
#include "profile/diagnosis.h"
#include "profile/recorder.h"
#include "profile/trace_writer.h"

namespace hone {

// Room in `recorder`, which measures `session`, for `prompt_tokens` and `decode_steps`. `trace`: zones are
// kept, for write_trace(), as many as kMostZones for each thread.
inline constexpr std::size_t kMostZones = std::size_t{1} << 20;
void reserve_recording(Recorder& recorder, const Session& session, std::int64_t prompt_tokens,
                       std::int64_t decode_steps, bool trace);

// The peaks of this machine and the time of an empty launch, measured on the session's threads. Errors:
// (User, DoesNotFit) less free memory than the measurement of the read rate takes.
Result<MachineLimits> measure_limits(Session& session);

// Launches that have something in common, summed over one phase.
struct LaunchSum {
  std::string name;
  Phase phase = Phase::Prefill;
  std::int64_t launches = 0;
  double seconds = 0;       // set-up and barrier included
  double busy_seconds = 0;  // of all threads together
  double bytes_read = 0;
  double bytes_written = 0;
  double operations = 0;
  double peak_seconds = 0;  // that the operations take at the measured peak of their type

  double average_seconds() const { return launches > 0 ? seconds / static_cast<double>(launches) : 0; }
  // The part of the threads' time in which they have no tile.
  double waiting(int threads) const { return seconds > 0 ? 1 - busy_seconds / (seconds * threads) : 0; }
};

// The same op of the same module in every layer, "layers.*.attn.q_proj".
struct LaunchKind {
  std::string op;
  std::string module;
  std::string kernel;
  LaunchMeasure measure;
  Diagnosis diagnosis;
};

struct ThreadTime {
  double busy_s = 0;
  double waiting_s = 0;  // inside launches, without a tile
  double outside_s = 0;  // between launches: for workers, the caller does something alone
};

struct PhaseProfile {
  double wall_s = 0;
  std::int64_t steps = 0;   // runs of the plan
  std::int64_t tokens = 0;  // that they took
  std::array<double, kParts> parts_s{};
  LaunchSum all;
  std::vector<ThreadTime> threads;
};

struct RegionUse {
  std::string_view region;  // static, dynamic, workspace
  std::int64_t reserved_bytes = 0;
  std::int64_t peak_bytes = 0;     // most in use at once
  std::int64_t current_bytes = 0;  // in use after the last launch
};

struct Profile {
  double wall_s = 0;
  std::array<PhaseProfile, kPhases.size()> phases;
  // Rows of one phase stand together. Ops and kernels: by time; layers: in the order of the plan.
  std::vector<LaunchSum> ops, layers, kernels;
  std::vector<LaunchKind> kinds;  // of both phases, by time
  std::vector<RegionUse> memory;
  std::int64_t state_bytes = 0;         // of the dynamic region: reserved for the state
  std::int64_t state_in_use_bytes = 0;  // of that, after the last step
  std::vector<MemorySample> samples;    // while loading, then the peak of each step
  MachineLimits limits;
  std::int64_t dropped_zones = 0;

  const PhaseProfile& phase(Phase phase) const { return phases[static_cast<std::size_t>(phase)]; }
  double parts_s(Part part) const;
  // Of the wall time, that named parts cover.
  double covered() const;
  // Prefill and decode together.
  LaunchSum launches() const;
  // Useful operations over the peak: the time that the operations take at the measured peak of their type,
  // over the wall time of prefill and decode. 0: no peak is known.
  double utilisation() const;
};

// `recorder` has been finished. Errors (Hone): a formula of the plan that cannot be evaluated.
Result<Profile> profile_of(const Session& session, const Recorder& recorder, const MachineLimits& limits);

// For write_trace(): the name of each launch, and memory in use from launch to launch.
std::vector<std::string> launch_names(const Plan& plan);
Result<std::vector<MemorySample>> memory_samples(const Plan& plan, const Recorder& recorder);

}  // namespace hone
