// The machine a program is made for, as plain data: all that passes may know of it.
#pragma once

#include <cstdint>

#include "base/isa.h"

namespace hone {

struct Target {
  Isa isa = Isa::Portable;
  int threads = 1;
};

}  // namespace hone
