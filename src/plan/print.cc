#include "plan/print.h"

#include <fmt/format.h>

namespace hone {
namespace {

std::string_view region_name(Region region) {
  constexpr std::string_view kNames[] = {"static", "state", "dynamic", "file"};
  return kNames[static_cast<std::size_t>(region)];
}

std::string operand_text(const Operand& operand) {
  std::string out =
      fmt::format("{}[{}] {}{}", region_name(operand.place.region), operand.place.offset.to_string(),
                  dtype_name(operand.spec.dtype), shape_to_string(operand.spec.shape));
  if (operand.spec.layout == Layout::Panel16) return out + " panel16";
  return out + " strides " + shape_to_string(operand.spec.strides);
}

}  // namespace

std::string print_plan(const Plan& plan) {
  std::string out;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    out += fmt::format("step {} {} = {} by {}{}{}\n", i, step.value, step.op, step.kernel->name,
                       step.module.empty() ? "" : " @", step.module);
    for (const Operand& operand : step.inputs) out += fmt::format("  in  {}\n", operand_text(operand));
    for (const Operand& operand : step.outputs) out += fmt::format("  out {}\n", operand_text(operand));
  }
  out += fmt::format("\ndynamic region, {} bytes = {}\n", plan.dynamic_bytes, plan.dynamic_peak.to_string());
  out += fmt::format("{:<10}{:>6}{:>6}  {:<28}{:<28}{}\n", "value", "first", "last", "bytes", "offset",
                     "module");
  for (const ValueLife& life : plan.lives) {
    out += fmt::format("{:<10}{:>6}{:>6}  {:<28}{:<28}{}\n", life.value, life.first, life.last,
                       life.bytes.to_string(), life.offset.to_string(), life.module);
  }
  return out;
}

}  // namespace hone
