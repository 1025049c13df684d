// The axis letters of docs/words.md as dims.
#pragma once

#include "tensor/dim.h"

namespace hone::axis {

// NOLINTBEGIN(readability-identifier-naming): single capitals, as in every shape comment
inline const Dim B = Dim::symbol('B');
inline const Dim T = Dim::symbol('T');
inline const Dim C = Dim::symbol('C');
inline const Dim R = Dim::symbol('R');
// NOLINTEND(readability-identifier-naming)

}  // namespace hone::axis
