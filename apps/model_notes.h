// What a person should know of a model before its answer: keys nobody knows, launches on reference kernels.
#pragma once

#include "engine/compile.h"

namespace hone {

// One line each to stderr; nothing where there is nothing to say.
void print_model_notes(const CompiledModel& model);

}  // namespace hone
