// hone verify: does the chain of passes compute what the primitive graph computes?
//
// Local. Each value that a pass computes in another way is computed in both ways, the old and the new, from
// the same operands: those that O0 had. Both run on the kernels of the level, so the difference is the
// pass's. It is held against the contract:
//   same bits            every bit
//   fewer roundings,     what rounding is expected to do to the old form (rounding_model.h): both forms
//   round, reorders             so the variance is twice that of the old one rounds to type       the
//   variance of the old form and of the new one, its narrower types included
// Of all elements of a value, with z = error / expected deviation: the root mean square of z is at most
// 2 + 7/sqrt(n), the largest at most 16 (derived in verify_rewrites.h).
//
// End to end. Each prefix of the chain against O0 on reference kernels: the logits of five sequences, the
// last three with a row of the embedding replaced. The tolerance is that of the reference data; and the
// logits as a whole may not become larger or smaller (verify_ends.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/options.h"
#include "file/checkpoint.h"

namespace hone {

// One pass, checked.
struct PassCheck {
  std::string name;
  Contract contract;
  bool changed = false;
  int rewritten = 0;     // values that it computes in another way
  double max_error = 0;  // of the worst of them, relative to its largest element
  double bound = 0;      // what the contract allows there, in the same measure
  bool local_ok = true;
  // The chain up to here against O0; NaN where it was not run.
  double end_to_end_error;
  double end_to_end_bound;
  // The factor by which the logits became larger, less 1; NaN where it was not run, or for too few tokens.
  double scale_error;
  double scale_bound;
  bool ok = true;
};

struct VerifyReport {
  std::vector<PassCheck> passes;
  bool ok = true;
  std::string guilty;  // name of a pass; "kernels" if the level's kernels fail without any pass; empty if ok
  int bisection_runs = 0;
  int most_bisection_runs = 0;  // ceil(log2(passes that changed the graph))
  int sequences = 0;
  std::int64_t tokens = 0;  // of each
  // Of the guilty pass, the smallest rewritten piece that fails, as text; its value.
  std::string value;
  std::string before;
  std::string after;
  std::vector<std::string> notes;
};

// What verify feeds: `ids` as they are; the first of them again and again; and three times `ids` with one row
// of the embedding as zeros, 2^10 times and 2^-40 times as large. Called after each piece of work with a line
// on it.
using VerifyProgress = std::function<void(const std::string& what)>;

// Errors: those of optimise() (a plugin that crashes among them); (User) ids that the model cannot take.
Result<VerifyReport> verify_model(const Checkpoint& checkpoint, const EngineOptions& options,
                                  std::span<const std::int32_t> ids, const VerifyProgress& progress = {});

}  // namespace hone
