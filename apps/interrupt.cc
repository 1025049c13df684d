#include "apps/interrupt.h"

#include <csignal>
#include <cstdlib>

namespace hone {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_interrupt(int) {
  if (flag != 0) std::_Exit(130);
  flag = 1;
}

}  // namespace

void watch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag != 0; }
void clear_interrupt() { flag = 0; }

Error interrupted_error() {
  return Error{ErrorCode::Interrupted, Fault::User, "signal", "interrupted", {}, {}, {}};
}

}  // namespace hone
