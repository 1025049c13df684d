#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <pthread.h>
#include <thread>
#include <time.h>
#include <vector>

#include "base/clock.h"
#include "base/float_environment.h"

namespace hone {
namespace {

std::unique_ptr<ThreadPool> make_pool(int threads, bool spin = true) {
  auto pool = ThreadPool::create(threads, spin);
  EXPECT_TRUE(pool.ok());
  return pool.ok() ? std::move(pool).value() : nullptr;
}

struct Counts {
  std::vector<int> runs;  // of each tile; not atomic: two threads in one tile are a data race for TSan to see
  int threads = 0;
  std::atomic<int> bad_threads{0};
};

void count_tiles(void* context, std::int64_t begin, std::int64_t end, int thread) {
  auto& counts = *static_cast<Counts*>(context);
  if (thread < 0 || thread >= counts.threads || begin >= end) ++counts.bad_threads;
  for (std::int64_t t = begin; t < end; ++t) ++counts.runs[static_cast<std::size_t>(t)];
}

TEST(ThreadPool, EveryTileRunsOnceForEveryCountOfThreads) {
  for (int threads = 1; threads <= 5; ++threads) {
    const auto pool = make_pool(threads);
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(pool->threads(), threads);
    for (const std::size_t tiles : {0U, 1U, 2U, 3U, 7U, 64U, 1000U}) {
      Counts counts;
      counts.runs.resize(tiles);
      counts.threads = threads;
      pool->run(static_cast<std::int64_t>(tiles), count_tiles, &counts);
      EXPECT_EQ(counts.runs, std::vector<int>(tiles, 1)) << threads << " threads";
      EXPECT_EQ(counts.bad_threads, 0);
    }
  }
}

TEST(ThreadPool, SpansSayWhenEachThreadWorked) {
  const auto pool = make_pool(2);
  ASSERT_NE(pool, nullptr);
  struct Work {
    std::atomic<int> inside{0};
    std::atomic<std::int64_t> first[2]{};
    std::atomic<std::int64_t> last[2]{};
  } work;
  // The first two tiles wait for each other, so that both threads have one.
  const auto body = [](void* context, std::int64_t, std::int64_t, int thread) {
    auto& w = *static_cast<Work*>(context);
    if (w.first[thread] == 0) w.first[thread] = now_nanoseconds();
    ++w.inside;
    while (w.inside < 2) std::this_thread::yield();
    w.last[thread] = now_nanoseconds();
  };
  WorkSpan spans[2] = {{1, 1}, {1, 1}};
  const std::int64_t begin = now_nanoseconds();
  pool->run(2, body, &work, spans);
  const std::int64_t end = now_nanoseconds();
  for (int thread = 0; thread < 2; ++thread) {
    EXPECT_LE(begin, spans[thread].begin_ns);
    EXPECT_LE(spans[thread].begin_ns, work.first[thread]);
    EXPECT_GE(spans[thread].end_ns, work.last[thread]);
    EXPECT_LE(spans[thread].end_ns, end);
  }
  // One tile runs on the caller alone, none on nobody, and what was measured before is gone.
  work.inside = 2;
  pool->run(1, body, &work, spans);
  EXPECT_GE(spans[0].begin_ns, end);
  EXPECT_EQ(spans[1].end_ns, 0);
  pool->run(0, body, &work, spans);
  EXPECT_EQ(spans[0].begin_ns, 0);
}

// Each run reads what the run before it wrote, all over the array: a tile missed, run late or seen too early
// breaks the final values.
TEST(ThreadPool, RunsAreOrderedOneAfterTheOther) {
  const auto pool = make_pool(4);
  ASSERT_NE(pool, nullptr);
  constexpr std::int64_t kTiles = 37;
  struct State {
    std::vector<std::int64_t> from, to;
  } state{std::vector<std::int64_t>(kTiles, 1), std::vector<std::int64_t>(kTiles)};
  constexpr int kRuns = 2000;
  for (int i = 0; i < kRuns; ++i) {
    pool->run(
        kTiles,
        [](void* context, std::int64_t begin, std::int64_t end, int) {
          auto& s = *static_cast<State*>(context);
          for (std::int64_t t = begin; t < end; ++t) s.to[t] = s.from[kTiles - 1 - t] + t;
        },
        &state);
    std::swap(state.from, state.to);
  }
  // Two steps add (kTiles - 1 - t) + t to every entry.
  for (const std::int64_t value : state.from) EXPECT_EQ(value, 1 + kRuns / 2 * (kTiles - 1));
}

TEST(ThreadPool, WorkersWakeUpAfterSleep) {
  const auto pool = make_pool(3);
  ASSERT_NE(pool, nullptr);
  for (int i = 0; i < 5; ++i) {
    const timespec pause{0, 5'000'000};
    nanosleep(&pause, nullptr);
    std::atomic<int> inside{0};
    // Two tiles that wait for each other: the caller alone could not end this.
    pool->run(
        2,
        [](void* context, std::int64_t begin, std::int64_t end, int) {
          auto& count = *static_cast<std::atomic<int>*>(context);
          count.fetch_add(static_cast<int>(end - begin));
          while (count.load() < 2) {
          }
        },
        &inside);
    EXPECT_EQ(inside.load(), 2);
  }
}

// Virtual time: each thread takes its next piece when it has ended the last one; thread 0 needs four times as
// long for a tile. Returns the end over the ideal, tiles / (threads - 3/4).
double makespan_with_a_slow_thread(std::int64_t tiles, int threads) {
  std::vector<std::int64_t> free_at(static_cast<std::size_t>(threads), 0);
  std::int64_t left = tiles;
  while (left > 0) {
    const auto next = std::min_element(free_at.begin(), free_at.end());
    const std::int64_t piece = piece_of(left, threads);
    *next += piece * (next == free_at.begin() ? 4 : 1);
    left -= piece;
  }
  const auto end = static_cast<double>(*std::max_element(free_at.begin(), free_at.end()));
  return end / (static_cast<double>(tiles) / (threads - 0.75));
}

TEST(ThreadPool, ASlowThreadCostsAtMostThreeTenthsFromThirteenTilesAThreadOn) {
  for (int threads = 2; threads <= 64; ++threads) {
    for (std::int64_t tiles = 13 * threads; tiles <= 40 * threads; ++tiles)
      ASSERT_LE(makespan_with_a_slow_thread(tiles, threads), 1.3)
          << tiles << " tiles, " << threads << " threads";
  }
}

// The same on the pool: the worker ends a tile only when the caller has ended four more, or there are none
// left for it.
TEST(ThreadPool, ASlowThreadIsGivenFewTiles) {
  struct Work {
    std::atomic<bool> worker_is_in{false};
    std::atomic<std::int64_t> fast{0};
    std::int64_t claimed = 0;
    std::int64_t slow = 0;
  } work;
  constexpr std::int64_t kTiles = 400;
  const auto pool = make_pool(2);
  ASSERT_NE(pool, nullptr);
  pool->run(
      kTiles,
      [](void* context, std::int64_t begin, std::int64_t end, int thread) {
        auto& w = *static_cast<Work*>(context);
        if (thread == 0) {
          while (!w.worker_is_in) std::this_thread::yield();
          w.fast += end - begin;
          return;
        }
        w.worker_is_in = true;
        w.claimed += end - begin;
        for (std::int64_t t = begin; t < end; ++t) {
          while (w.fast < 4 * (w.slow + 1) && w.fast + w.claimed < kTiles) std::this_thread::yield();
          ++w.slow;
        }
      },
      &work);
  EXPECT_EQ(work.fast + work.slow, kTiles);
  EXPECT_GE(work.slow, 1);
  EXPECT_LE(static_cast<double>(4 * work.slow), 1.3 * kTiles / 1.25);
}

// CPU time of all threads of this process, in ns.
std::int64_t cpu_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

constexpr int kPauses = 50;
constexpr std::int64_t kPauseNanoseconds = 1'000'000;

// What the process uses while it has nothing to do, a pause behind each of kPauses launches, in ns: the least
// of three such runs, for what else happens only adds to it.
std::int64_t cpu_of_pauses(bool spin) {
  const auto pool = make_pool(3, spin);
  std::int64_t least = 0;
  for (int run = 0; run < 3; ++run) {
    std::int64_t used = 0;
    for (int i = 0; i < kPauses; ++i) {
      pool->run(6, [](void*, std::int64_t, std::int64_t, int) {}, nullptr);
      const std::int64_t before = cpu_nanoseconds();
      const timespec pause{0, kPauseNanoseconds};
      nanosleep(&pause, nullptr);
      used += cpu_nanoseconds() - before;
    }
    least = run == 0 ? used : std::min(least, used);
  }
  return least;
}

TEST(ThreadPool, WorkersSpinForABoundedTimeOrNotAtAll) {
  const std::int64_t sleeping = cpu_of_pauses(false);
  const std::int64_t spinning = cpu_of_pauses(true);
  RecordProperty("sleeping_us", std::to_string(sleeping / 1000));
  RecordProperty("spinning_us", std::to_string(spinning / 1000));
  // Two workers use twice kSpinNanoseconds a pause, a sixteenth of what they would without a bound; a fourth
  // of that leaves room for the clock's and the scheduler's own work.
  EXPECT_LT(spinning, 2 * kPauses * kPauseNanoseconds / 4);
  EXPECT_LT(sleeping, spinning);
}

#if defined(__SSE__)
TEST(ThreadPool, TilesRunInTheStandardFloatEnvironment) {
  const unsigned flush_to_zero = kStandardMxcsr | 0x8040;
  const unsigned before = read_float_control();
  write_float_control(flush_to_zero);  // inherited by the workers that start now
  const auto pool = make_pool(3);
  ASSERT_NE(pool, nullptr);
  Counts wrong;
  wrong.runs.resize(64);
  pool->run(
      64,
      [](void* context, std::int64_t begin, std::int64_t end, int) {
        auto& counts = *static_cast<Counts*>(context);
        volatile float tiny = std::numeric_limits<float>::min();
        for (std::int64_t t = begin; t < end; ++t)
          counts.runs[static_cast<std::size_t>(t)] = tiny * 0.5F == 0.0F;
      },
      &wrong);
  EXPECT_EQ(wrong.runs, std::vector<int>(64, 0));
  EXPECT_EQ(read_float_control() & 0x8040U, 0x8040U) << "the caller's environment comes back";
  write_float_control(before);
}
#endif

TEST(ThreadPool, StackIsAsLargeAsThePlanSays) {
  const auto pool = make_pool(2);
  ASSERT_NE(pool, nullptr);
  struct Seen {
    std::atomic<int> inside{0};
    std::size_t stack = 0;
  } seen;
  pool->run(
      2,
      [](void* context, std::int64_t, std::int64_t, int thread) {
        auto& s = *static_cast<Seen*>(context);
        if (thread == 1) {
          pthread_attr_t attributes;
          pthread_getattr_np(pthread_self(), &attributes);
          pthread_attr_getstacksize(&attributes, &s.stack);
          pthread_attr_destroy(&attributes);
        }
        s.inside.fetch_add(1);
        while (s.inside.load() < 2) {
        }
      },
      &seen);
  EXPECT_GE(seen.stack, ThreadPool::kWorkerStackBytes);
  EXPECT_LT(seen.stack, ThreadPool::kWorkerStackBytes + (1U << 20)) << "a sanitizer adds its thread storage";
}

TEST(ThreadPool, CountOutOfRangeIsAUsageError) {
  for (const int threads : {0, -1, ThreadPool::kMaxThreads + 1}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool.ok());
    EXPECT_EQ(pool.error().code, ErrorCode::Usage);
    EXPECT_EQ(pool.error().where, "--threads");
  }
}

}  // namespace
}  // namespace hone
