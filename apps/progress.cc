#include "apps/progress.h"

#include <algorithm>
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
    const std::string line = fmt::format("{} {:3d} % of {}", what_, percent, human_bytes(total));
    width_ = std::max(width_, line.size());
    print_note("\r" + line);
  };
}

void Progress::done() {
  // Blanks and not an escape sequence, which a terminal may not know.
  if (width_ > 0) print_note("\r" + std::string(width_, ' ') + "\r");
  width_ = 0;
}

}  // namespace hone
