// The thread pool alone: what a launch costs beyond its tiles, and what a slow thread costs.
//   threads_bench [--benchmark_filter=launch]
// `least` is the smallest time of one launch over all iterations: on a machine that others use, means say
// little.
#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"

namespace hone::bench {
namespace {

constexpr int kStep = 153;  // launches of one step of a model of 25 layers

// A step of launches with nothing to do in them.
void empty_launches(benchmark::State& state) {
  const auto pool = ThreadPool::create(static_cast<int>(state.range(0)), state.range(1) != 0);
  double least = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const std::int64_t begin = now_nanoseconds();
    for (int i = 0; i < kStep; ++i) (*pool)->run(64, [](void*, std::int64_t, std::int64_t, int) {}, nullptr);
    least = std::min(least, static_cast<double>(now_nanoseconds() - begin) / kStep);
  }
  state.counters["least_ns"] = least;
}

// A launch whose two tiles wait for each other, so that the worker comes in: there and back.
void launch_of_two(benchmark::State& state) {
  const auto pool = ThreadPool::create(2);
  double least = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    std::atomic<int> inside{0};
    const std::int64_t begin = now_nanoseconds();
    (*pool)->run(
        2,
        [](void* context, std::int64_t first, std::int64_t end, int) {
          auto& count = *static_cast<std::atomic<int>*>(context);
          count.fetch_add(static_cast<int>(end - first));
          while (count.load() < 2) {
          }
        },
        &inside);
    least = std::min(least, static_cast<double>(now_nanoseconds() - begin));
  }
  state.counters["least_ns"] = least;
}

// A chain of `length` fused multiply-adds.
void work(std::int64_t length) {
  double value = 2;
  benchmark::DoNotOptimize(value);
  for (std::int64_t i = 0; i < length; ++i) value = value * 0.999 + 0.001;
  benchmark::DoNotOptimize(value);
}

// Thread 1 does four times the work of a tile: as a core does that a busy neighbour has three quarters of.
void slow_thread(benchmark::State& state) {
  const auto pool = ThreadPool::create(2);
  const std::int64_t tiles = state.range(0);
  constexpr std::int64_t kChain = 4000;
  double alone = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 20; ++i) {
    const std::int64_t begin = now_nanoseconds();
    for (std::int64_t t = 0; t < tiles; ++t) work(kChain);
    alone = std::min(alone, static_cast<double>(now_nanoseconds() - begin));
  }
  double least = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const std::int64_t begin = now_nanoseconds();
    (*pool)->run(
        tiles,
        [](void*, std::int64_t first, std::int64_t end, int thread) {
          for (std::int64_t t = first; t < end; ++t) work(thread == 1 ? 4 * kChain : kChain);
        },
        nullptr);
    least = std::min(least, static_cast<double>(now_nanoseconds() - begin));
  }
  state.counters["least_of_ideal"] = least / (alone / 1.25);
}

BENCHMARK(empty_launches)
    ->ArgNames({"threads", "spin"})
    ->Args({1, 1})
    ->Args({2, 1})
    ->Args({2, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(launch_of_two)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(slow_thread)
    ->ArgNames({"tiles"})
    ->Arg(24)
    ->Arg(64)
    ->Arg(256)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace hone::bench

BENCHMARK_MAIN();
