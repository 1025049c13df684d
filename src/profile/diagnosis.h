// What a launch is bound by, from what was measured of it and of the machine, and what to try next.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/recorder.h"

namespace hone {

// What this machine does at most, measured; 0: not known.
struct MachineLimits {
  double read_bytes_per_s = 0;
  double f32_operations_per_s = 0;
  double int8_operations_per_s = 0;
  double launch_s = 0;  // of a launch whose tiles do nothing
  double bf16_operations_per_s = 0;
  // Of what a decode step reads, which may lie in a cache in part.
  double read_working_set_bytes_per_s = 0;
  std::int64_t working_set_bytes = 0;
  double amx_bf16_operations_per_s = 0;
  double amx_int8_operations_per_s = 0;
};

// The peak that bounds products of int8, of bf16, or of neither: of f32, as are those of bf16 without tiles.
double products_peak(const MachineLimits& limits, bool int8, bool bf16);

// Launches of one kind in one phase, summed.
struct LaunchMeasure {
  Phase phase = Phase::Prefill;
  std::int64_t launches = 0;
  double seconds = 0;       // on the clock of the wall
  double busy_seconds = 0;  // of all threads together
  int threads = 1;
  double bytes = 0;       // read and written
  double operations = 0;  // useful ones
  bool int8 = false;      // its products are of int8, else of f32
  bool bf16 = false;      // or of bf16, where the machine has tiles for them
  double tiles = 1;       // of one launch, the mean
  // Tokens of a step and those that its tiles have room for: 40 of 48 where a tile takes 16. Equal where
  // tiles do not cut tokens.
  std::int64_t tokens = 1;
  std::int64_t tile_tokens = 1;  // that one tile takes
  double token_fill = 1;         // mean over the steps
  // Columns of its weights, and the part of the packed panels that they fill; 0: no weights.
  std::int64_t columns = 0;
  double column_fill = 1;
  double weight_bits = 0;   // of one weight; 0: no weights
  double weight_share = 0;  // of the bytes
  bool reads_state = false;
};

enum class BoundBy : std::uint8_t { Bandwidth, Compute, Launch, Waiting, TileShape };
std::string_view bound_name(BoundBy bound);

// Each share is a part of the time of the launches, but for the roofs not a disjoint one.
struct Diagnosis {
  BoundBy bound = BoundBy::Bandwidth;
  bool clear = false;    // false: no share reaches its threshold, and `bound` is the largest
  double bandwidth = 0;  // the time that the bytes take at the measured rate of reading
  double compute = 0;    // the time that the operations take at the measured peak of their type
  double launch = 0;     // the time of as many empty launches
  double waiting = 0;    // the time in which threads have no tile, beyond that of empty launches
  double shape = 0;      // the part of the tiles that holds padding
  std::string reason;    // the numbers, as a sentence
  std::string next;      // what to try
};

Diagnosis diagnose(const LaunchMeasure& measure, const MachineLimits& limits);

}  // namespace hone
