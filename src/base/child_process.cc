#include "base/child_process.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

Error refused(std::string_view what) {
  return Error{ErrorCode::DoesNotFit,
               Fault::User,
               "system",
               fmt::format("the system refused {}", what),
               "a process for the plugin",
               std::strerror(errno),
               "raise the limits on processes and open files (ulimit -u, ulimit -n)"};
}

[[noreturn]] void be_child(const std::function<int(int fd)>& work, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int number = 1; number < NSIG; ++number) std::signal(number, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  // No destructor and no buffer of the caller's runs a second time.
  _exit(work(fd));
}

// Until the other end is closed, or a limit is reached.
void collect(int fd, const ChildLimits& limits, Clock::time_point deadline, ChildEnd& end) {
  std::string buffer(std::size_t{1} << 16, '\0');
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waiting{fd, POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&waiting, 1, static_cast<int>(std::min<long long>(left, 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      end.timed_out = true;
      return;
    }
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    end.output.append(buffer, 0, static_cast<std::size_t>(count));
    if (end.output.size() > limits.bytes) {
      end.too_large = true;
      return;
    }
  }
}

// Until the child has ended, by itself or killed: after a limit, or when it goes on although it has closed
// the pipe.
int wait_for(pid_t child, Clock::time_point deadline, ChildEnd& end) {
  for (;;) {
    if (end.timed_out || end.too_large) kill(child, SIGKILL);
    int status = 0;
    const bool killed = end.timed_out || end.too_large;
    const pid_t ended = waitpid(child, &status, killed ? 0 : WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return 0;
    if (Clock::now() > deadline) end.timed_out = true;
    if (!killed) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

std::string ChildEnd::how(const ChildLimits& limits) const {
  if (timed_out) return fmt::format("no answer after {:g} s", limits.seconds);
  if (too_large) return fmt::format("an answer of more than {} bytes", limits.bytes);
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return fmt::format("exit status {}", exit_code);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<ChildEnd> run_in_child(const std::function<int(int fd)>& work, const ChildLimits& limits) {
  int ends[2];
  if (pipe(ends) != 0) return refused("a pipe");
  const pid_t child = fork();
  if (child < 0) {
    const Error error = refused("a process");
    close(ends[0]);
    close(ends[1]);
    return error;
  }
  if (child == 0) {
    close(ends[0]);
    be_child(work, ends[1]);
  }
  close(ends[1]);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(limits.seconds));
  ChildEnd end;
  collect(ends[0], limits, deadline, end);
  close(ends[0]);
  const int status = wait_for(child, deadline, end);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status) && !end.timed_out && !end.too_large) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace hone
