// Worker threads for parallel loops over tiles. Which thread runs which tile is not fixed: tiles must not
// depend on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <vector>

#include "base/result.h"

namespace hone {

// When one thread worked on one job, on the clock of base/clock.h; {0, 0}: it did not come in time. A line of
// the cache each, for each is written by another thread.
struct alignas(64) WorkSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// Tiles that a thread takes at once where `left` are left. The rest of a launch in which one thread is four
// times slower than the others takes left / (threads - 3/4) at best, and the slow one needs 4 * piece: no
// longer than that while piece <= left / (4 * threads). Shrinking with what is left, pieces end together.
constexpr std::int64_t piece_of(std::int64_t left, int threads) {
  const std::int64_t piece = left / (std::int64_t{4} * threads);
  return piece < 1 ? 1 : piece;
}

class ThreadPool {
 public:
  // Bytes of stack of each worker, for the memory plan. The caller's own thread is not counted.
  static constexpr std::size_t kWorkerStackBytes = std::size_t{256} * 1024;
  static constexpr int kMaxThreads = 1024;
  // How long a thread without work watches for the next launch before it sleeps: longer than the gaps
  // between the launches of a step, shorter than a scheduler's time slice by far.
  static constexpr std::int64_t kSpinNanoseconds = 30'000;

  // Runs the tiles begin <= t < end. `thread` is 0 for the caller of run() and 1 .. threads() - 1 for
  // workers.
  using Function = void (*)(void* context, std::int64_t begin, std::int64_t end, int thread);

  // `threads` >= 1 counts the caller of run(): threads - 1 workers are started. Without `spin` they sleep as
  // soon as there is no work. Errors: Usage for a count out of 1 .. kMaxThreads, DoesNotFit if the system
  // refuses a thread.
  static Result<std::unique_ptr<ThreadPool>> create(int threads, bool spin = true);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls `function` for all of 0 <= t < tiles in pieces, on the caller and on every worker that comes in
  // time, and returns when all are done. All that was written before run() is seen by the tiles, and all that
  // tiles write is seen after it. Every piece runs in the standard floating-point environment
  // (base/float_environment.h). One call at a time; `function` must not call run() of the same pool, and must
  // not throw. `spans`, if given, is an array of threads(): run() sets each element.
  void run(std::int64_t tiles, Function function, void* context, WorkSpan* spans = nullptr);

 private:
  struct Worker {
    ThreadPool* pool = nullptr;
    int index = 0;
    pthread_t thread{};
  };

  explicit ThreadPool(bool spin) : spin_nanoseconds_(spin ? kSpinNanoseconds : 0) {}
  static void* worker_main(void* argument);
  void work(int thread);
  void work_timed(int thread);
  bool join_job();
  void leave_job();
  void wait_for_workers();
  // Waits until `word` differs from `former`; returns its value.
  int wait_for_change(const std::atomic<int>& word, int former) const;
  Status start(int threads);

  const std::int64_t spin_nanoseconds_;
  // The job of the current run(). Written only while the gate is closed and no worker is inside.
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::int64_t tiles_ = 0;
  WorkSpan* spans_ = nullptr;

  alignas(64) std::atomic<std::int64_t> next_tile_{0};
  // kOpen while a job takes workers, plus the number of workers inside.
  alignas(64) std::atomic<int> gate_{0};
  // Counts jobs; sleeping workers wait for it to change.
  alignas(64) std::atomic<int> job_count_{0};
  std::atomic<bool> stop_{false};

  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace hone
