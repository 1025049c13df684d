// Unigram language model (Kudo 2018): the cut of a text into pieces with the largest sum of scores.
#pragma once

#include <memory>

#include "tokens/word_encoder.h"

namespace hone {

// One pass from left to right over whole characters (Viterbi). A character that is no piece counts 10 less
// than the lowest score of a Normal piece; on a tie the cut that was found first stays, that is the one whose
// last piece is longer. Pieces of type Unused are not used, user-defined ones always win, Control, Unknown
// and Byte ones are no text. Sums are rounded to f32 after each piece, as SentencePiece does. Unknown
// characters and errors as in tokens/spm_bpe.h.
Result<std::unique_ptr<const WordEncoder>> make_unigram_encoder(const TokenizerSpec& spec,
                                                                const Vocabulary& vocabulary);

}  // namespace hone
