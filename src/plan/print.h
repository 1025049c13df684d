// The plan as text: to read and to compare.
#pragma once

#include <string>

#include "plan/plan.h"

namespace hone {

// One line a step (kernel, operands with region, offset, type and strides), then the table of lifetimes in
// the dynamic region.
std::string print_plan(const Plan& plan);

}  // namespace hone
