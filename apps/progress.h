// A progress line on stderr, only where that is a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace hone {

class Progress {
 public:
  explicit Progress(std::string what);
  std::function<void(std::int64_t done, std::int64_t total)> callback();
  // Clears the line.
  void done();

 private:
  std::string what_;
  std::size_t width_ = 0;  // of what is shown
  int last_percent_ = -1;
};

}  // namespace hone
