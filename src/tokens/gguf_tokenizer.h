// TokenizerSpec -> tokenizer.* keys of a GGUF file: the way back of tokens/tokenizer_gguf.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "file/gguf_writer.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Adds the tokenizer and its chat template to `writer`. Ids from the last token up to `vocabulary` (rows of
// the embedding) become unused tokens, as GGUF's other writers fill them. Returns what GGUF has no key for
// and a text hardly ever shows, a line each: added tokens that take blanks along, say. Errors (BadModel),
// before anything is added: what no key can say and changes the ids of common texts, by name: a pre-tokeniser
// without a row in gguf_pre_tokenizer.cc, a model of another kind, a token beyond `vocabulary`.
Result<std::vector<std::string>> add_gguf_tokenizer(const TokenizerSpec& spec, std::int64_t vocabulary,
                                                    GgufWriter& writer);

}  // namespace hone
