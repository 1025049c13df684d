#include "base/thread_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <signal.h>
#include <system_error>

#include "base/clock.h"
#include "base/float_environment.h"

namespace hone {
namespace {

constexpr int kOpen = 1 << 16;
// Pauses between two looks at the clock: a pause takes 40 to 140 cycles, so a look at most every microsecond.
constexpr int kPausesPerLook = 16;

inline void pause_briefly() {
#if defined(__SSE__)
  _mm_pause();
#endif
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads, bool spin) {
  if (threads < 1 || threads > kMaxThreads) {
    return Error{ErrorCode::Usage,
                 Fault::User,
                 "--threads",
                 "the number of threads is out of range",
                 fmt::format("1 to {}", kMaxThreads),
                 fmt::format("{}", threads),
                 "give a number of threads that the machine has"};
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(spin));
  if (Status status = pool->start(threads); !status.ok()) return std::move(status).error();
  return pool;
}

// Workers block all signals: those of the process go to the threads of the program.
Status ThreadPool::start(int threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  int failure = pthread_attr_setstacksize(&attributes, kWorkerStackBytes);
  sigset_t all;
  sigset_t former;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &former);
  for (int i = 1; i < threads && failure == 0; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->pool = this;
    worker->index = i;
    failure = pthread_create(&worker->thread, &attributes, worker_main, worker.get());
    if (failure == 0) workers_.push_back(std::move(worker));
  }
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  pthread_attr_destroy(&attributes);
  if (failure == 0) return {};
  return Error{ErrorCode::DoesNotFit,
               Fault::User,
               "--threads",
               "the system refused a thread",
               fmt::format("{} worker threads", threads - 1),
               fmt::format("{} started, then: {}", workers_.size(), std::generic_category().message(failure)),
               "use fewer threads, or raise the limit on processes (ulimit -u, pids.max)"};
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  job_count_.fetch_add(1, std::memory_order_release);
  job_count_.notify_all();
  for (const auto& worker : workers_) pthread_join(worker->thread, nullptr);
}

void* ThreadPool::worker_main(void* argument) {
  const Worker& worker = *static_cast<const Worker*>(argument);
  ThreadPool& pool = *worker.pool;
  while (true) {
    // Read before the gate: a job opened after a failed join_job() has another count.
    const int seen = pool.job_count_.load(std::memory_order_acquire);
    if (pool.stop_.load(std::memory_order_acquire)) return nullptr;
    if (pool.join_job()) {
      pool.work_timed(worker.index);
      pool.leave_job();
    }
    pool.wait_for_change(pool.job_count_, seen);
  }
}

int ThreadPool::wait_for_change(const std::atomic<int>& word, int former) const {
  if (spin_nanoseconds_ > 0) {
    const std::int64_t end = now_nanoseconds() + spin_nanoseconds_;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        const int value = word.load(std::memory_order_acquire);
        if (value != former) return value;
        pause_briefly();
      }
    } while (now_nanoseconds() < end);
  }
  word.wait(former, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

// The gate holds the count of workers inside together with its open bit, so that a worker comes in either
// while the job is there or not at all: run() never waits for a worker that has not woken up.
bool ThreadPool::join_job() {
  int gate = gate_.load(std::memory_order_relaxed);
  while ((gate & kOpen) != 0) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::leave_job() {
  if (gate_.fetch_sub(1, std::memory_order_release) == 1) gate_.notify_one();
}

void ThreadPool::work(int thread) {
  const FloatEnvironment environment;
  std::int64_t begin = next_tile_.load(std::memory_order_relaxed);
  while (begin < tiles_) {
    const std::int64_t end = begin + piece_of(tiles_ - begin, threads());
    if (!next_tile_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
    function_(context_, begin, end, thread);
    begin = next_tile_.load(std::memory_order_relaxed);
  }
}

// Not measured, it costs a branch per job.
void ThreadPool::work_timed(int thread) {
  if (spans_ == nullptr) return work(thread);
  WorkSpan& span = spans_[thread];
  span.begin_ns = now_nanoseconds();
  work(thread);
  span.end_ns = now_nanoseconds();
}

void ThreadPool::wait_for_workers() {
  int gate = gate_.load(std::memory_order_acquire);
  while (gate != 0) gate = wait_for_change(gate_, gate);
}

void ThreadPool::run(std::int64_t tiles, Function function, void* context, WorkSpan* spans) {
  if (spans != nullptr) std::fill(spans, spans + threads(), WorkSpan{});
  if (tiles <= 0) return;
  if (workers_.empty() || tiles == 1) {
    if (spans != nullptr) spans->begin_ns = now_nanoseconds();
    {
      const FloatEnvironment environment;
      function(context, 0, tiles, 0);
    }
    if (spans != nullptr) spans->end_ns = now_nanoseconds();
    return;
  }
  function_ = function;
  context_ = context;
  tiles_ = tiles;
  spans_ = spans;
  next_tile_.store(0, std::memory_order_relaxed);
  gate_.store(kOpen, std::memory_order_release);
  job_count_.fetch_add(1, std::memory_order_release);
  job_count_.notify_all();
  work_timed(0);
  gate_.fetch_and(~kOpen, std::memory_order_relaxed);
  wait_for_workers();
}

}  // namespace hone
