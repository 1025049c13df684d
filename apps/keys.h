// What a terminal sends for keys and pastes, as the characters that the line editor has commands for.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace hone {

// What makes a terminal mark the beginning and end of a paste, and what ends that.
inline constexpr std::string_view kMarkPastes = "\x1b[?2004h";
inline constexpr std::string_view kStopMarkingPastes = "\x1b[?2004l";

class Keys {
 public:
  // The next byte of the terminal, or -1 at its end. `soon`: only if it is there at once; else -1.
  using Source = std::function<int(bool soon)>;
  explicit Keys(Source source) : source_(std::move(source)) {}

  // The next byte for the editor, or -1 at the end. Sequences of unknown keys are left out. Line ends of a
  // paste are quoted (Ctrl-V), so that they do not end the line.
  int next();

 private:
  void read_more();
  void read_escape();
  void read_control_sequence();
  void put(std::string_view bytes) { ready_.insert(ready_.end(), bytes.begin(), bytes.end()); }

  Source source_;
  std::deque<char> ready_;
  bool pasting_ = false;
  bool ended_ = false;
};

}  // namespace hone
