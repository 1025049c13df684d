#include "plan/choose_kernel.h"

#include <fmt/format.h>

namespace hone {

KernelChoice choose_kernel(const Signature& signature, const Target& target, Level level,
                           std::span<const Kernel> kernels) {
  KernelChoice choice;
  const auto consider = [&](const Kernel& kernel) {
    if (kernel.op != signature.op || kernel.isa > target.isa) return;
    if (level == Level::O0 && !kernel.reference) return;
    if (target.portable_bits && kernel.own_bits) return;
    const bool better = choice.kernel == nullptr || (choice.kernel->reference && !kernel.reference) ||
                        (choice.kernel->reference == kernel.reference && kernel.isa > choice.kernel->isa);
    if (!better) return;
    const std::string_view refusal = kernel.accepts(signature);
    if (refusal.empty()) {
      choice.kernel = &kernel;
    } else {
      if (!choice.refusals.empty()) choice.refusals += "; ";
      choice.refusals += fmt::format("{} {}", kernel.name, refusal);
    }
  };
  for (const Kernel& kernel : kernels) consider(kernel);
  return choice;
}

std::string signature_text(const Signature& signature) {
  std::string out;
  for (const OperandSpec& spec : signature.inputs) {
    if (!out.empty()) out += " x ";
    out += fmt::format("{}{}", dtype_name(spec.dtype), shape_to_string(spec.shape));
    if (spec.layout == Layout::Panel16) out += " (panel16)";
  }
  return out;
}

}  // namespace hone
