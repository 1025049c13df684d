// Recognises the activations of feed-forward layers, spelled out in primitive ops.
#pragma once

#include <optional>

#include "passes/match.h"

namespace hone {

// The z of `value`; the nodes between become part of `pattern`, also where it does not match: pass a copy.
using Activation = std::optional<ValueId> (*)(Pattern& pattern, ValueId value);

// silu(z) = z / (1 + exp(-z)) = z * (1 / (1 + exp(-z))) (Elfwing et al. 2018).
std::optional<ValueId> match_silu(Pattern& pattern, ValueId value);

// gelu(z) = (z/2) * (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))) (Hendrycks and Gimpel 2016), z^3 as a power or
// as products.
std::optional<ValueId> match_gelu(Pattern& pattern, ValueId value);

}  // namespace hone
