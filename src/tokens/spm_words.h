// SentencePiece's two simple models: a piece for each character, or for each word.
#pragma once

#include <memory>

#include "tokens/word_encoder.h"

namespace hone {

// Characters, and user-defined pieces. One that is no piece: as in tokens/spm_bpe.h.
Result<std::unique_ptr<const WordEncoder>> make_spm_char_encoder(const TokenizerSpec& spec,
                                                                 const Vocabulary& vocabulary);
// A word begins with each U+2581.
Result<std::unique_ptr<const WordEncoder>> make_spm_word_encoder(const TokenizerSpec& spec,
                                                                 const Vocabulary& vocabulary);

}  // namespace hone
