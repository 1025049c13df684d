#include "profile/trace_writer.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace hone {
namespace {

// The caller's number in a trace: that of the process, as a main thread has it. Perfetto shows a thread 0 on
// the track of the main thread and drops its name.
constexpr int kFirstThread = 1;

// Depth in the nesting: of events that begin together the outer one comes first.
enum class Kind : std::uint8_t { Phase, Step, Launch, Part, Counter };

struct Event {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Kind kind = Kind::Part;
  int thread = 0;
  std::size_t index = 0;  // the phase, the step, the launch, the part, the sample
};

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code >= 0x7f) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Microseconds to the nanosecond.
std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

class Writer {
 public:
  Writer(const Recorder& recorder, std::span<const std::string> launch_names,
         std::span<const MemorySample> memory, const std::function<void(std::string_view)>& sink)
      : recorder_(recorder), launch_names_(launch_names), memory_(memory), sink_(sink) {}

  void write() {
    collect();
    sink_("{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n");
    sink_(R"({"ph": "M", "pid": 1, "tid": 1, "name": "process_name", "args": {"name": "hone"}})");
    for (int thread = 0; thread < recorder_.threads(); ++thread) {
      const std::string name = thread == 0 ? "caller (thread 0)" : fmt::format("worker (thread {})", thread);
      sink_(
          fmt::format(",\n{{\"ph\": \"M\", \"pid\": 1, \"tid\": {}, \"name\": \"thread_name\", \"args\": "
                      "{{\"name\": {}}}}}",
                      thread + kFirstThread, json_string(name)));
    }
    for (const Event& event : events_) write_event(event);
    sink_("\n]}\n");
  }

 private:
  void collect() {
    for (const Phase phase : kPhases) {
      if (recorder_.wall_ns(phase) == 0) continue;
      const std::int64_t begin = recorder_.begin_ns(phase);
      events_.push_back(
          {begin, begin + recorder_.wall_ns(phase), Kind::Phase, 0, static_cast<std::size_t>(phase)});
    }
    for (std::size_t i = 0; i < recorder_.steps().size(); ++i) {
      events_.push_back({recorder_.steps()[i].begin_ns, recorder_.steps()[i].end_ns, Kind::Step, 0, i});
    }
    for (int thread = 0; thread < recorder_.threads(); ++thread) {
      for (const Zone& zone : recorder_.zones(thread)) {
        const bool launch = zone.name >= kLaunchName;
        events_.push_back({zone.begin_ns, zone.end_ns, launch ? Kind::Launch : Kind::Part, thread,
                           launch ? zone.name - kLaunchName : zone.name});
      }
    }
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      events_.push_back({memory_[i].at_ns, memory_[i].at_ns, Kind::Counter, 0, i});
    }
    std::ranges::stable_sort(events_, {}, [](const Event& event) {
      return std::tuple(event.begin_ns, static_cast<int>(event.kind), -event.end_ns);
    });
  }

  std::string name_of(const Event& event) const {
    switch (event.kind) {
      case Kind::Phase:
        return std::string(phase_name(static_cast<Phase>(event.index)));
      case Kind::Step: {
        const StepRecord& step = recorder_.steps()[event.index];
        return fmt::format("step of {} x {}, context {}", step.sequences, step.tokens, step.context);
      }
      case Kind::Launch:
        return launch_names_[event.index];
      default:
        return std::string(part_name(static_cast<Part>(event.index)));
    }
  }

  void write_event(const Event& event) const {
    const std::string at = microseconds(event.begin_ns - recorder_.begin_ns());
    if (event.kind == Kind::Counter) {
      const MemorySample& sample = memory_[event.index];
      sink_(fmt::format(
          ",\n{{\"ph\": \"C\", \"pid\": 1, \"tid\": 1, \"ts\": {}, \"name\": \"memory\", \"args\": "
          "{{\"static\": {}, \"dynamic\": {}, \"workspace\": {}}}}}",
          at, sample.static_bytes, sample.dynamic_bytes, sample.workspace_bytes));
      return;
    }
    constexpr std::string_view kCategories[] = {"phase", "step", "launch", "part"};
    sink_(
        fmt::format(",\n{{\"ph\": \"X\", \"pid\": 1, \"tid\": {}, \"ts\": {}, \"dur\": {}, \"cat\": \"{}\", "
                    "\"name\": {}}}",
                    event.thread + kFirstThread, at, microseconds(event.end_ns - event.begin_ns),
                    kCategories[static_cast<std::size_t>(event.kind)], json_string(name_of(event))));
  }

  const Recorder& recorder_;
  std::span<const std::string> launch_names_;
  std::span<const MemorySample> memory_;
  const std::function<void(std::string_view)>& sink_;
  std::vector<Event> events_;
};

}  // namespace

void write_trace(const Recorder& recorder, std::span<const std::string> launch_names,
                 std::span<const MemorySample> memory, const std::function<void(std::string_view)>& sink) {
  Writer(recorder, launch_names, memory, sink).write();
}

}  // namespace hone
