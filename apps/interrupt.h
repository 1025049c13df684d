// Ctrl-C. A command ends at once with exit code 130, except while it asks for a flag instead, to end a stream
// cleanly.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace hone {

// From now on SIGINT ends the process with the error of an interrupt: the block on stderr, and `document` on
// stdout. SIGINT stays ignored where the caller ignores it (a background job of a shell).
void end_on_interrupt(std::string document);

// After a command has begun to read lines from a terminal: SIGINT ends the process with the same exit code
// and without a word. The terminal is first put back into the state that it has at the first call, and gets
// `farewell`.
void end_on_interrupt_at_prompt(std::string farewell);

// While it lives, a signal that ends the process (SIGINT, SIGTERM) removes the file first. At most four at a
// time; more are left as they are.
class RemovedOnInterrupt {
 public:
  explicit RemovedOnInterrupt(const std::string& path);
  ~RemovedOnInterrupt();
  RemovedOnInterrupt(const RemovedOnInterrupt&) = delete;
  RemovedOnInterrupt& operator=(const RemovedOnInterrupt&) = delete;

 private:
  std::size_t slot_;
};

// From now on SIGINT sets the flag; a second one ends the process at once.
void watch_interrupts();
bool interrupted();
void clear_interrupt();
Error interrupted_error();

}  // namespace hone
