// The machine a program is made for, as plain data: all that passes may know of it.
#pragma once

#include <cstdint>

#include "base/isa.h"

namespace hone {

struct Target {
  Isa isa = Isa::Portable;
  int threads = 1;
  // Threads without work watch for the next launch for a while before they sleep. Not where every moment of
  // it counts against a CPU quota, nor where they would take a core from one another.
  bool threads_spin = true;
  // --bits portable: only kernels and policies that give the same bits on every ISA level.
  bool portable_bits = false;
};

}  // namespace hone
