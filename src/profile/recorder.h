// What a run takes, recorded while it runs: named parts of the caller's thread, launches, steps.
//
// Nothing is allocated between reserve_launches() and finish(): what finds no room is counted as dropped.
// Sums are kept for every launch of the plan, so they are whole even where zones were dropped. Only the
// thread that runs the session calls a recorder; what workers measure comes to it through spans(), after the
// barrier. Code that may be measured takes a `Recorder*`; nullptr costs one branch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace hone {

// Every moment of a run is in one of them: Start lasts until the first token of the prompt is run, Decode
// begins where the first token is sampled.
enum class Phase : std::uint8_t { Start, Prefill, Decode };
inline constexpr std::array kPhases{Phase::Start, Phase::Prefill, Phase::Decode};
std::string_view phase_name(Phase phase);

// What the caller's thread does. No two of them are at the same time.
enum class Part : std::uint8_t {
  Open,       // the header of the checkpoint
  Compile,    // graph, passes, plan
  Tokenizer,  // its tables
  Statement,  // memory statement, budget, freeing what compiling left
  Weights,    // arenas, threads, reading and packing weights
  Prompt,     // template and token ids
  Bind,       // checks, and the sizes of the step put into the plan
  Inputs,     // ids, positions, rows
  SetUp,      // of launches, from the end of the launch before to the first tile; recording falls into it
  Kernels,    // tiles that this thread computes
  Barrier,    // waiting for the tiles of other threads
  Outputs,    // finding the logits
  Sampling,
  Text,  // ids to text, stop texts
};
inline constexpr std::size_t kParts = 14;
std::string_view part_name(Part part);

// Something that one thread did, on the clock of base/clock.h.
struct Zone {
  // A Part, or kLaunchName + the index of a launch in the plan.
  std::uint32_t name = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};
inline constexpr std::uint32_t kLaunchName = 256;

// One run of the plan, with the sizes that it was bound to.
struct StepRecord {
  Phase phase = Phase::Prefill;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t sequences = 0, tokens = 0, context = 0, rows = 0;  // B, T, C, R
  std::int64_t all_tokens = 0;                                    // N
};

// All runs of one launch of the plan in one phase.
struct LaunchTotal {
  std::int64_t count = 0;
  std::int64_t nanoseconds = 0;  // of the caller's thread, set-up and barrier included
};

class Recorder {
 public:
  // The wall clock starts, in Phase::Start.
  Recorder();

  // Room for the sums of a plan of `launches` steps on `threads` threads.
  void reserve_launches(std::size_t launches, int threads);
  // Room for the record of `steps` runs of the plan, and for `zones` zones of each thread (0: none is kept).
  void reserve_trace(std::size_t steps, std::size_t zones);

  // Ends the phase before. Each phase once, in their order.
  void begin_phase(Phase phase);
  // Ends the last one.
  void finish();

  void add_part(Part part, std::int64_t begin_ns, std::int64_t end_ns);
  // One span per thread, for ThreadPool::run; add_launch() reads it.
  WorkSpan* spans() { return spans_.data(); }
  void add_launch(std::size_t launch, std::int64_t begin_ns, std::int64_t end_ns);
  // `step`'s phase is set here.
  void add_step(StepRecord step);
  // Bytes of the static region that are there so far.
  void add_loaded(std::int64_t bytes);

  // What was recorded.
  std::int64_t begin_ns() const { return phase_begin_[0]; }
  std::int64_t wall_ns() const {
    return wall_ns(Phase::Start) + wall_ns(Phase::Prefill) + wall_ns(Phase::Decode);
  }
  std::int64_t begin_ns(Phase phase) const { return phase_begin_[static_cast<std::size_t>(phase)]; }
  std::int64_t wall_ns(Phase phase) const { return phase_ns_[static_cast<std::size_t>(phase)]; }
  std::int64_t part_ns(Phase phase, Part part) const {
    return part_ns_[static_cast<std::size_t>(phase)][static_cast<std::size_t>(part)];
  }
  int threads() const { return threads_; }
  std::size_t launches() const { return launches_; }
  const LaunchTotal& launch(Phase phase, std::size_t launch) const { return totals_[index(phase, launch)]; }
  // Of the tiles of that launch, on `thread`.
  std::int64_t busy_ns(Phase phase, std::size_t launch, int thread) const {
    return busy_ns_[index(phase, launch) * static_cast<std::size_t>(threads_) +
                    static_cast<std::size_t>(thread)];
  }
  std::span<const StepRecord> steps() const { return steps_; }
  // Of one thread, in the order in which they ended; a launch comes after its parts.
  std::span<const Zone> zones(int thread) const { return zones_[static_cast<std::size_t>(thread)]; }
  struct Loaded {
    std::int64_t at_ns = 0;
    std::int64_t bytes = 0;
  };
  std::span<const Loaded> loaded() const { return loaded_; }
  std::int64_t dropped_zones() const { return dropped_zones_; }
  std::int64_t dropped_steps() const { return dropped_steps_; }
  // On the heap, of what has been written to: room that no zone has used yet is no memory.
  std::int64_t bytes() const;

 private:
  std::size_t index(Phase phase, std::size_t launch) const {
    return static_cast<std::size_t>(phase) * launches_ + launch;
  }
  void add_zone(int thread, std::uint32_t name, std::int64_t begin_ns, std::int64_t end_ns);

  Phase phase_ = Phase::Start;
  std::int64_t since_ = 0;  // begin of the time that is in no phase yet
  std::array<std::int64_t, kPhases.size()> phase_begin_{};
  std::array<std::int64_t, kPhases.size()> phase_ns_{};
  std::array<std::array<std::int64_t, kParts>, kPhases.size()> part_ns_{};
  int threads_ = 0;
  std::size_t launches_ = 0;
  std::vector<LaunchTotal> totals_;       // [phase, launch]
  std::vector<std::int64_t> busy_ns_;     // [phase, launch, thread]
  std::vector<WorkSpan> spans_;           // [thread]
  std::vector<std::vector<Zone>> zones_;  // [thread]
  std::size_t zone_room_ = 0;
  std::vector<StepRecord> steps_;
  std::vector<Loaded> loaded_;
  std::int64_t dropped_zones_ = 0;
  std::int64_t dropped_steps_ = 0;
};

// Names the time of a stretch of code that falls into parts, one after the other.
class PartClock {
 public:
  explicit PartClock(Recorder* recorder) : recorder_(recorder) { restart(); }
  // Since the clock was made, or the mark before.
  void mark(Part part) {
    if (recorder_ == nullptr) return;
    const std::int64_t now = now_nanoseconds();
    recorder_->add_part(part, at_, now);
    at_ = now;
  }
  // The time since the last mark belongs to someone else.
  void restart() {
    if (recorder_ != nullptr) at_ = now_nanoseconds();
  }

 private:
  Recorder* recorder_;
  std::int64_t at_ = 0;
};

}  // namespace hone
