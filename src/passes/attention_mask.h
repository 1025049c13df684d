// Recognises the masks of attention: key c is visible to a token at position p iff c <= p, and with a sliding
// window of W keys only if c > p - W.
#pragma once

#include <cstdint>
#include <optional>

#include "passes/match.h"

namespace hone {

// Which keys a mask leaves visible.
struct VisibleKeys {
  ValueId positions = -1;   // i32 [B,T]
  bool causal = false;      // c <= p
  std::int64_t window = 0;  // c > p - window; 0: no lower bound

  // Visible by both; false if they speak of different positions.
  bool restrict_by(const VisibleKeys& other);
};

struct MaskedScores {
  ValueId scores = -1;  // [..,T,C] before the mask
  VisibleKeys visible;
};

// `value` as masked scores [B,K,G,T,C] or [B,H,T,C]: by select with -inf, or by adding 0 and -inf. The
// condition is any mixture of `and`, `or`, `not` and comparisons of sums of positions, keys and constants
// that comes down to the two bounds. The node that masks becomes part of `pattern`; the mask itself does not,
// for it is shared.
std::optional<MaskedScores> match_attention_mask(Pattern& pattern, ValueId value);

}  // namespace hone
