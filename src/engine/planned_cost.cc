#include "engine/planned_cost.h"

namespace hone {

Result<PlannedCost> planned_cost(const Plan& plan, const Bindings& sizes) {
  PlannedCost cost;
  for (const Step& step : plan.steps) {
    cost.bytes += static_cast<double>(HONE_TRY(step.bytes_moved.evaluate(sizes)));
    cost.operations += static_cast<double>(HONE_TRY(step.operations.evaluate(sizes)));
  }
  return cost;
}

}  // namespace hone
