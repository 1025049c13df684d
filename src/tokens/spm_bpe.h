// Byte-pair encoding as SentencePiece does it: any two neighbours whose joined text is a piece may merge, the
// highest score first (Kudo and Richardson 2018).
#pragma once

#include <memory>

#include "tokens/word_encoder.h"

namespace hone {

// A text starts as characters and user-defined pieces, which merge with nothing. The pair of the highest
// score is merged, leftmost on a tie. A piece of type Unused serves merges only: in the end it is cut again
// as it was made. A character without piece becomes its byte pieces (byte_fallback), or the unknown piece;
// neighbouring unknowns become one with fuse_unknown, else one each. Errors (BadModel): a score that is
// missing or not finite; byte_fallback without all 256 bytes; no unknown piece without byte_fallback.
Result<std::unique_ptr<const WordEncoder>> make_spm_bpe_encoder(const TokenizerSpec& spec,
                                                                const Vocabulary& vocabulary);

}  // namespace hone
