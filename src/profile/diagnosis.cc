#include "profile/diagnosis.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace hone {
namespace {

// At 60 % of a roof, everything else together can win at most a factor of 1 / 0.6 = 1.7, and well-made
// kernels stay there: the roof is the first thing to change.
constexpr double kNearRoof = 0.6;
// More bytes than memory can send have come from a cache, so memory is not what they wait for. The measured
// rate itself varies by some 10 % between two measurements.
constexpr double kFromCache = 1.2;
// Half of the time is what an empty launch takes: no kernel can make it twice as fast.
constexpr double kMostlyLaunch = 0.5;
// A quarter of what the threads could do is lost, as where two of them share three tiles.
constexpr double kMuchWaiting = 0.25;
// A fifth of the tiles is padding, or runs on the shorter inner loops that take what a tile leaves over.
constexpr double kMuchPadding = 0.2;

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

double percent(double share) {
  return 100 * share;
}

void choose(Diagnosis& d) {
  d.clear = true;
  const double memory = d.bandwidth <= kFromCache ? d.bandwidth : 0;
  if (std::max(memory, d.compute) >= kNearRoof) {
    d.bound = memory >= d.compute ? BoundBy::Bandwidth : BoundBy::Compute;
  } else if (d.launch >= kMostlyLaunch) {
    d.bound = BoundBy::Launch;
  } else if (d.waiting >= kMuchWaiting) {
    d.bound = BoundBy::Waiting;
  } else if (d.shape >= kMuchPadding) {
    d.bound = BoundBy::TileShape;
  } else {
    d.clear = false;
    const std::array shares{memory, d.compute, d.launch, d.waiting, d.shape};  // in the order of BoundBy
    d.bound = static_cast<BoundBy>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  }
}

std::string reason_of(const Diagnosis& d, const LaunchMeasure& m, const MachineLimits& limits) {
  switch (d.bound) {
    case BoundBy::Bandwidth:
      return fmt::format("{:.1f} GB/s is {:.0f} % of the {:.1f} GB/s that this machine reads",
                         ratio(m.bytes, m.seconds) / 1e9, percent(d.bandwidth),
                         limits.read_bytes_per_s / 1e9);
    case BoundBy::Compute:
      return fmt::format("{:.0f} GOP/s is {:.0f} % of the {} peak of {:.0f} GOP/s",
                         ratio(m.operations, m.seconds) / 1e9, percent(d.compute),
                         m.int8                                           ? "int8"
                         : m.bf16 && limits.amx_bf16_operations_per_s > 0 ? "AMX bf16"
                                                                          : "f32",
                         products_peak(limits, m.int8, m.bf16) / 1e9);
    case BoundBy::Launch:
      return fmt::format("{:.1f} us a launch, of which an empty one takes {:.1f} us ({:.0f} %)",
                         1e6 * ratio(m.seconds, static_cast<double>(m.launches)), 1e6 * limits.launch_s,
                         percent(d.launch));
    case BoundBy::Waiting:
      return fmt::format("{:.0f} % of the time of {} threads has no tile; {:.1f} tiles a launch",
                         percent(d.waiting), m.threads, m.tiles);
    case BoundBy::TileShape:
      return m.column_fill < m.token_fill
                 ? fmt::format("{} columns fill {:.0f} % of panels of 16", m.columns, percent(m.column_fill))
                 : fmt::format("{} tokens fill {:.0f} % of tiles of {}", m.tokens, percent(m.token_fill),
                               m.tile_tokens);
  }
  return {};
}

std::string next_for_bandwidth(const LaunchMeasure& m) {
  const bool weights = m.weight_share > 0.5;
  if (weights && m.weight_bits > 5)
    return fmt::format("weights of fewer bits than {:.1f}: hone quantize MODEL --to q4_0 -o FILE",
                       m.weight_bits);
  if (weights)
    return fmt::format("only fewer bytes help, and the weights have {:.1f} bits already: a smaller model",
                       m.weight_bits);
  if (m.reads_state) return "a KV cache of fewer bytes (--kv f16), or a shorter context";
  return "a pass that keeps these values in the cache: hone explain MODEL shows which fired";
}

std::string next_for_waiting(const LaunchMeasure& m) {
  if (m.tiles >= 4.0 * m.threads)
    return fmt::format(
        "there are tiles enough: look in --trace F.json for a thread that is held up, or for other "
        "programs on these processors; --threads {} if there are",
        std::max(1, m.threads - 1));
  if (m.phase == Phase::Prefill)
    return "more tokens in a step make more tiles: a larger --chunk, or a longer prompt";
  return "one token makes few tiles: fusing it into a neighbour saves the wait (hone explain MODEL shows "
         "what is fused)";
}

std::string next_of(const Diagnosis& d, const LaunchMeasure& m) {
  if (!d.clear && (d.bound == BoundBy::Bandwidth || d.bound == BoundBy::Compute))
    return "the kernel: nothing else holds it up, and it is far from what the machine does";
  switch (d.bound) {
    case BoundBy::Bandwidth:
      return next_for_bandwidth(m);
    case BoundBy::Compute:
      if (!m.int8 && !m.bf16 && m.weight_bits > 0)
        return "products of int8 have a higher peak: hone quantize MODEL --to q8_0 -o FILE";
      return "the kernel is near what the processor can do: fewer operations, so a smaller model or a "
             "shorter prompt";
    case BoundBy::Launch:
      return m.phase == Phase::Prefill
                 ? "more tokens in a launch (--chunk), or fewer launches: hone explain MODEL shows what is "
                   "fused"
                 : "fewer launches: hone explain MODEL shows what is fused, and --level O3 fuses most";
    case BoundBy::Waiting:
      return next_for_waiting(m);
    case BoundBy::TileShape:
      if (m.column_fill < m.token_fill)
        return "nothing at run time: the model's own size is no multiple of 16";
      return fmt::format("steps of a multiple of {0} tokens: --chunk {1}", m.tile_tokens,
                         m.tile_tokens * std::max<std::int64_t>(1, m.tokens / m.tile_tokens));
  }
  return {};
}

}  // namespace

std::string_view bound_name(BoundBy bound) {
  constexpr std::array<std::string_view, 5> kNames{"bandwidth", "compute", "launch", "waiting", "shape"};
  return kNames[static_cast<std::size_t>(bound)];
}

double products_peak(const MachineLimits& limits, bool int8, bool bf16) {
  if (int8) return limits.int8_operations_per_s;
  return bf16 && limits.amx_bf16_operations_per_s > 0 ? limits.amx_bf16_operations_per_s
                                                      : limits.f32_operations_per_s;
}

Diagnosis diagnose(const LaunchMeasure& m, const MachineLimits& limits) {
  Diagnosis d;
  d.bandwidth = ratio(ratio(m.bytes, limits.read_bytes_per_s), m.seconds);
  d.compute = ratio(ratio(m.operations, products_peak(limits, m.int8, m.bf16)), m.seconds);
  d.launch = ratio(static_cast<double>(m.launches) * limits.launch_s, m.seconds);
  // In an empty launch no thread is busy: that time is counted once.
  const double idle = 1 - ratio(m.busy_seconds, m.seconds * m.threads);
  d.waiting = std::max(0.0, idle - std::min(1.0, d.launch));
  d.shape = 1 - m.token_fill * m.column_fill;
  choose(d);
  d.reason = reason_of(d, m, limits);
  d.next = next_of(d, m);
  return d;
}

}  // namespace hone
