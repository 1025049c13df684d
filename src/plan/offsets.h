// Lifetimes -> offsets: places values in one arena so that no two that are alive at the same time overlap.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dim.h"

namespace hone {

inline constexpr std::int64_t kArenaAlignment = 64;  // one cache line, and what the widest vector load likes

// A value that lives from the start of step `first` to the end of step `last`.
struct Lifetime {
  Dim bytes;  // rounded up to kArenaAlignment by the planner
  int first = 0;
  int last = 0;
};

struct OffsetPlan {
  std::vector<Dim> offsets;     // in bytes, one per lifetime, as formulas over the symbols
  Dim peak;                     // size of the arena, as a formula
  std::int64_t peak_bytes = 0;  // the arena at the bound
  std::int64_t lower_bound_bytes =
      0;              // largest sum of aligned sizes alive in one step, at the bound: no plan is smaller
  std::string order;  // the order of placement that gave the smallest arena
};

// Tries several orders of placement at the bound (sizes under `bound`), lowest offset that fits each time,
// and keeps the smallest arena. The offsets are then written as formulas: offset(i) = max over the values j
// that i was placed above of offset(j) + size(j). Values that are alive together keep their vertical order,
// so the formulas are free of overlap for every value of the symbols, not only at the bound; at the bound
// they are no larger than what was placed. A formula that grows too long is replaced by the number that was
// placed, which is as safe. `formulas` false: sizes at the bound are wanted only; offsets are the numbers
// placed there.
Result<OffsetPlan> plan_offsets(std::span<const Lifetime> lifetimes, const Bindings& bound,
                                bool formulas = true);

}  // namespace hone
