// What the plan says that one step costs, at given sizes.
#pragma once

#include "base/result.h"
#include "plan/plan.h"

namespace hone {

struct PlannedCost {
  double bytes = 0;       // read and written
  double operations = 0;  // arithmetic ones
};

Result<PlannedCost> planned_cost(const Plan& plan, const Bindings& sizes);

}  // namespace hone
