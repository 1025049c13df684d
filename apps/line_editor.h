// A line from the terminal, with editing and history (libedit). The prompt and what is typed go to stderr:
// stdout is for answers.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace hone {

class LineEditor {
 public:
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Without its end; a paste of several lines is one. nullopt at the end of the input (Ctrl-D on an empty
  // line).
  std::optional<std::string> read();

  // What a process writes to stderr that ends while a line is read.
  static std::string farewell();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hone
