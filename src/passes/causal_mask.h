// Recognises the causal mask of attention: key c is visible to a token iff c <= the token's position.
#pragma once

#include <optional>

#include "passes/match.h"

namespace hone {

struct MaskedScores {
  ValueId scores = -1;     // [..,T,C] before the mask
  ValueId positions = -1;  // i32 [B,T]
};

// `value` as causally masked scores [B,K,G,T,C]: by select with -inf, or by adding 0 and -inf. The node that
// masks becomes part of `pattern`; the mask itself does not, for it is shared.
std::optional<MaskedScores> match_causal_mask(Pattern& pattern, ValueId value);

}  // namespace hone
