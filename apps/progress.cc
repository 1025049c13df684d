#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apps/verb.h"

namespace hone {

Progress::Progress(std::string what) : what_(std::move(what)) {}

std::function<void(std::int64_t, std::int64_t)> Progress::callback() {
  if (isatty(STDERR_FILENO) != 1) return {};
  return [this](std::int64_t done, std::int64_t total) {
    const int percent = total > 0 ? static_cast<int>(done * 100 / total) : 100;
    if (percent == last_percent_) return;
    last_percent_ = percent;
    shown_ = true;
    print_note(fmt::format("\r{} {:3d} % of {}", what_, percent, human_bytes(total)));
  };
}

void Progress::done() {
  if (shown_) print_note("\r\x1b[K");
  shown_ = false;
}

}  // namespace hone
