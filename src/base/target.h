// The machine a program is made for, as plain data: all that passes may know of it.
#pragma once

#include <cstdint>

#include "base/isa.h"

namespace hone {

struct Target {
  Isa isa = Isa::Portable;
  int threads = 1;
  // --bits portable: only kernels and policies that give the same bits on every ISA level.
  bool portable_bits = false;
};

}  // namespace hone
