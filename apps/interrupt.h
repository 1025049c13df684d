// Ctrl-C as a flag that long work looks at.
#pragma once

#include "base/result.h"

namespace hone {

// From now on SIGINT sets the flag; a second one ends the process at once.
void watch_interrupts();
bool interrupted();
void clear_interrupt();
Error interrupted_error();

}  // namespace hone
