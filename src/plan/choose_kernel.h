// Which kernel runs a node: the first of its op that the machine has and whose signature fits.
#pragma once

#include <span>
#include <string>

#include "base/target.h"
#include "kernels/kernel.h"
#include "passes/pass.h"

namespace hone {

struct KernelChoice {
  const Kernel* kernel = nullptr;  // nullptr: none fits
  std::string refusals;            // what each candidate would need, for the report
};

// At O0 only reference kernels are candidates; above, fast kernels of the target's ISA level come first, then
// those of lower levels, then the reference kernel. Under `target.portable_bits` kernels with bits of their
// own are no candidates.
KernelChoice choose_kernel(const Signature& signature, const Target& target, Level level,
                           std::span<const Kernel> kernels = all_kernels());

// "f32[T,64] x q4_1[128,64] (panel16)" for error messages.
std::string signature_text(const Signature& signature);

}  // namespace hone
