#include "apps/model_notes.h"

#include <fmt/format.h>

#include "apps/text_io.h"
#include "base/machine.h"

namespace hone {

void print_model_notes(const CompiledModel& model) {
  for (const std::string& warning : model.config.warnings) print_note(fmt::format("warning: {}\n", warning));
  for (const std::string& note : model.config.notes) print_note(fmt::format("note: {}\n", note));
  const ThreadLimit limit = usable_threads();
  if (model.plan.target.threads > limit.threads) {
    print_note(
        fmt::format("warning: {} threads on {} processors ({}) wait for each other; --threads {} is faster\n",
                    model.plan.target.threads, limit.threads, limit.source, limit.threads));
  }
  const std::string line = model.plan.fallback_line();
  if (!line.empty()) print_note(line + "\n");
}

}  // namespace hone
