// A recording as a Chrome trace, the JSON format that Perfetto and chrome://tracing open: one line per event.
//
// On each thread events nest: a phase holds steps, a step holds parts and launches, a launch holds the tiles
// of its thread and the wait at its barrier. Timestamps never go back.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/recorder.h"

namespace hone {

// What is in use of each region at one moment.
struct MemorySample {
  std::int64_t at_ns = 0;
  std::int64_t static_bytes = 0;
  std::int64_t dynamic_bytes = 0;
  std::int64_t workspace_bytes = 0;
};

// `launch_names`: of each launch of the plan. `memory`: in the order of time. `sink` takes the text in
// pieces.
void write_trace(const Recorder& recorder, std::span<const std::string> launch_names,
                 std::span<const MemorySample> memory, const std::function<void(std::string_view)>& sink);

}  // namespace hone
