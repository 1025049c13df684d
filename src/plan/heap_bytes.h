// What a plan itself takes on the heap, counted structure by structure: an item of the memory statement.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace hone {

// Bytes of the containers that `plan` holds, with the allocator's 16 bytes of header per block.
std::int64_t heap_bytes(const Plan& plan);

}  // namespace hone
