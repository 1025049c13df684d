// The trace against the rules of its format: what Perfetto needs to show it.
#include "profile/trace_writer.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

using Json = nlohmann::json;

std::string trace_text(const Recorder& recorder, const std::vector<std::string>& names,
                       const std::vector<MemorySample>& memory) {
  std::string text;
  write_trace(recorder, names, memory, [&](std::string_view piece) { text += piece; });
  return text;
}

// One prefill step of two launches on two threads, on the recorder's own clock.
void record(Recorder& recorder) {
  recorder.reserve_launches(2, 2);
  recorder.reserve_trace(4, 64);
  recorder.begin_phase(Phase::Prefill);
  std::int64_t at = now_nanoseconds();
  StepRecord step;
  step.begin_ns = at;
  recorder.add_part(Part::Bind, at, at + 3);
  at += 3;
  for (std::size_t launch = 0; launch < 2; ++launch) {
    recorder.spans()[0] = {at + 1, at + 8};
    recorder.spans()[1] = {at + 2, at + 9};
    recorder.add_launch(launch, at, at + 10);
    at += 10;
  }
  step.end_ns = at;
  step.sequences = 1;
  step.tokens = 5;
  step.context = 9;
  recorder.add_step(step);
  while (now_nanoseconds() <= at) {
  }
  recorder.finish();
}

std::int64_t nanoseconds_of(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}

TEST(TraceWriter, EventsNestOnEachThreadAndTimeNeverGoesBack) {
  Recorder recorder;
  record(recorder);
  const Json trace = Json::parse(trace_text(recorder, {"matmul a", "matmul b"}, {}));
  std::map<int, std::vector<std::int64_t>> open;  // per thread: ends of the events around
  std::int64_t last = 0;
  int events = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++events;
    const std::int64_t begin = nanoseconds_of(event["ts"]);
    const std::int64_t end = begin + nanoseconds_of(event["dur"]);
    EXPECT_GE(begin, last) << event;
    last = begin;
    std::vector<std::int64_t>& around = open[event["tid"].get<int>()];
    while (!around.empty() && around.back() <= begin) around.pop_back();
    if (!around.empty()) {
      EXPECT_LE(end, around.back()) << event;
    }
    around.push_back(end);
  }
  // Two phases, the step, bind, and for both launches three zones of the caller and one of the worker.
  EXPECT_EQ(events, 2 + 1 + 1 + 2 * 4);
}

TEST(TraceWriter, LaunchesHaveTheirNamesAndThreadsToo) {
  Recorder recorder;
  record(recorder);
  const Json trace = Json::parse(trace_text(recorder, {"matmul a", "the \"second\"\n\x80"}, {}));
  std::map<std::string, int> names;
  std::map<int, std::string> threads;
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_EQ(event["pid"], 1);
    if (event["name"] == "thread_name") threads[event["tid"]] = event["args"]["name"];
    if (event["ph"] == "X") ++names[event["name"].get<std::string>()];
  }
  EXPECT_EQ(names["matmul a"], 2);  // on both threads
  EXPECT_EQ(names["the \"second\"\n\u0080"], 2);
  EXPECT_EQ(names["step of 1 x 5, context 9"], 1);
  EXPECT_EQ(names["prefill"], 1);
  EXPECT_EQ(names["kernels"], 2);
  EXPECT_EQ(threads, (std::map<int, std::string>{{1, "caller (thread 0)"}, {2, "worker (thread 1)"}}));
}

TEST(TraceWriter, MemoryIsACounterWithOneSeriesForEachRegion) {
  Recorder recorder;
  record(recorder);
  const std::int64_t zero = recorder.begin_ns();
  const Json trace =
      Json::parse(trace_text(recorder, {"a", "b"}, {{zero + 1500, 10, 0, 0}, {zero + 2001, 10, 20, 30}}));
  std::vector<Json> counters;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "C") counters.push_back(event);
  }
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[0]["ts"], 1.5);
  EXPECT_EQ(counters[1]["ts"], 2.001);
  EXPECT_EQ(counters[1]["name"], "memory");
  EXPECT_EQ(counters[1]["args"], (Json{{"static", 10}, {"dynamic", 20}, {"workspace", 30}}));
}

}  // namespace
}  // namespace hone
