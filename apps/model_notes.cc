#include "apps/model_notes.h"

#include <fmt/format.h>

#include "apps/text_io.h"

namespace hone {

void print_model_notes(const CompiledModel& model) {
  for (const std::string& warning : model.config.warnings) print_note(fmt::format("warning: {}\n", warning));
  const std::string line = model.plan.fallback_line();
  if (!line.empty()) print_note(line + "\n");
}

}  // namespace hone
