#include "profile/recorder.h"

namespace hone {
namespace {

constexpr std::size_t kLoadedRoom = 1024;

template <class T>
bool push_if_room(std::vector<T>& list, std::size_t room, const T& item) {
  if (list.size() >= room) return false;
  list.push_back(item);
  return true;
}

}  // namespace

std::string_view phase_name(Phase phase) {
  constexpr std::array<std::string_view, kPhases.size()> kNames{"start", "prefill", "decode"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view part_name(Part part) {
  constexpr std::array<std::string_view, kParts> kNames{
      "open file",    "compile",      "build tokenizer", "memory statement", "load weights",
      "tokenize",     "bind sizes",   "write inputs",    "set up launches",  "kernels",
      "barrier wait", "find outputs", "sampling",        "detokenize"};
  return kNames[static_cast<std::size_t>(part)];
}

Recorder::Recorder() {
  loaded_.reserve(kLoadedRoom);
  since_ = now_nanoseconds();
  phase_begin_.fill(since_);
}

void Recorder::reserve_launches(std::size_t launches, int threads) {
  launches_ = launches;
  threads_ = threads;
  const auto thread_count = static_cast<std::size_t>(threads);
  totals_.assign(kPhases.size() * launches, {});
  busy_ns_.assign(kPhases.size() * launches * thread_count, 0);
  spans_.assign(thread_count, {});
  zones_.resize(thread_count);
}

void Recorder::reserve_trace(std::size_t steps, std::size_t zones) {
  steps_.reserve(steps);
  zone_room_ = zones;
  for (std::vector<Zone>& list : zones_) list.reserve(zones);
}

void Recorder::begin_phase(Phase phase) {
  finish();
  phase_ = phase;
  phase_begin_[static_cast<std::size_t>(phase)] = since_;
}

void Recorder::finish() {
  const std::int64_t now = now_nanoseconds();
  phase_ns_[static_cast<std::size_t>(phase_)] += now - since_;
  since_ = now;
}

void Recorder::add_zone(int thread, std::uint32_t name, std::int64_t begin_ns, std::int64_t end_ns) {
  if (zone_room_ == 0) return;
  if (!push_if_room(zones_[static_cast<std::size_t>(thread)], zone_room_, {name, begin_ns, end_ns}))
    ++dropped_zones_;
}

void Recorder::add_part(Part part, std::int64_t begin_ns, std::int64_t end_ns) {
  part_ns_[static_cast<std::size_t>(phase_)][static_cast<std::size_t>(part)] += end_ns - begin_ns;
  add_zone(0, static_cast<std::uint32_t>(part), begin_ns, end_ns);
}

void Recorder::add_launch(std::size_t launch, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::size_t at = index(phase_, launch);
  const auto name = kLaunchName + static_cast<std::uint32_t>(launch);
  ++totals_[at].count;
  totals_[at].nanoseconds += end_ns - begin_ns;
  std::int64_t* busy = busy_ns_.data() + at * static_cast<std::size_t>(threads_);
  for (int thread = 0; thread < threads_; ++thread) {
    const WorkSpan& span = spans_[static_cast<std::size_t>(thread)];
    busy[thread] += span.end_ns - span.begin_ns;
    if (thread > 0 && span.end_ns > span.begin_ns) add_zone(thread, name, span.begin_ns, span.end_ns);
  }
  auto& parts = part_ns_[static_cast<std::size_t>(phase_)];
  // A launch without tiles is set-up only.
  const bool worked = spans_[0].begin_ns != 0;
  const std::int64_t begin_work = worked ? spans_[0].begin_ns : end_ns;
  const std::int64_t end_work = worked ? spans_[0].end_ns : end_ns;
  parts[static_cast<std::size_t>(Part::SetUp)] += begin_work - begin_ns;
  parts[static_cast<std::size_t>(Part::Kernels)] += end_work - begin_work;
  parts[static_cast<std::size_t>(Part::Barrier)] += end_ns - end_work;
  add_zone(0, static_cast<std::uint32_t>(Part::Kernels), begin_work, end_work);
  add_zone(0, static_cast<std::uint32_t>(Part::Barrier), end_work, end_ns);
  add_zone(0, name, begin_ns, end_ns);
}

void Recorder::add_step(StepRecord step) {
  step.phase = phase_;
  if (!push_if_room(steps_, steps_.capacity(), step)) ++dropped_steps_;
}

std::int64_t Recorder::bytes() const {
  std::size_t sum = totals_.size() * sizeof(LaunchTotal) + busy_ns_.size() * sizeof(std::int64_t) +
                    spans_.size() * sizeof(WorkSpan) + steps_.size() * sizeof(StepRecord) +
                    loaded_.size() * sizeof(Loaded);
  for (const std::vector<Zone>& list : zones_) sum += list.size() * sizeof(Zone);
  return static_cast<std::int64_t>(sum);
}

void Recorder::add_loaded(std::int64_t bytes) {
  push_if_room(loaded_, kLoadedRoom, {now_nanoseconds(), bytes});
}

}  // namespace hone
