// Work in a process of its own: code that may crash, hang or change the floating-point environment cannot
// hurt the caller there.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/result.h"

namespace hone {

struct ChildLimits {
  double seconds = 60;                         // of wall time
  std::size_t bytes = std::size_t{256} << 20;  // of output
};

// How a child ended.
struct ChildEnd {
  std::string output;      // what it wrote
  int exit_code = 0;       // of one that ended by itself
  int signal = 0;          // that ended it, or 0
  bool timed_out = false;  // killed after limits.seconds
  bool too_large = false;  // killed after it wrote more than limits.bytes

  bool good() const { return exit_code == 0 && signal == 0 && !timed_out && !too_large; }
  // "signal 11 (Segmentation fault)", "no answer after 60 s", ..
  std::string how(const ChildLimits& limits) const;
};

// Writes all of `text` into a pipe; false if the reader has gone.
bool write_all(int fd, std::string_view text);

// Forks, runs `work` there with the writing end of a pipe, and collects what it writes. The child has default
// signal handlers, its stdout is its stderr, and it ends with the caller. An error (User) where the system
// refuses a process.
Result<ChildEnd> run_in_child(const std::function<int(int fd)>& work, const ChildLimits& limits);

}  // namespace hone
