// SentencePiece's model -> TokenizerSpec.
#pragma once

#include "base/result.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Copies what it needs. Control pieces are added tokens, looked for in the text as it is. Nothing is put
// around a text: whether a begin token is, stands in tokenizer_config.json. Errors (BadModel): a denormaliser
// with a character map. `place` is named in errors.
Result<TokenizerSpec> tokenizer_spec_from_sentencepiece(const SentencePieceModel& model,
                                                        std::string_view place);

}  // namespace hone
