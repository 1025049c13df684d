// Byte-pair encoding by ranked merges (Sennrich et al. 2016; bytes as alphabet: Radford et al. 2019).
#pragma once

#include <memory>

#include "tokens/word_encoder.h"

namespace hone {

// A word starts as single bytes (byte-level vocabularies) or characters, and adjacent pairs are merged,
// lowest rank first, leftmost on a tie. A character without token becomes its byte tokens (byte_fallback),
// the unknown token, or nothing. Errors: BadModel for a merge that names no token or stands twice.
Result<std::unique_ptr<const WordEncoder>> make_bpe_encoder(const TokenizerSpec& spec,
                                                            const Vocabulary& vocabulary);

}  // namespace hone
