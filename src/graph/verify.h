// The rules of the IR as a check: run between passes.
#pragma once

#include "base/result.h"
#include "graph/graph.h"

namespace hone {

// An error (Fault::Hone) for the first broken rule: each value written once and before it is read; ids in
// range; known ops; types as the op rows infer them; dims over the graph's symbols only; unique input and
// output names; each state appended exactly once, its update the append's result, and read only through it;
// bodies that verify by themselves. `after` names what ran last, for the message.
Status verify(const Graph& graph, std::string_view after);

}  // namespace hone
