// tokenizer.ggml.* keys of a GGUF file -> TokenizerSpec.
#pragma once

#include "base/result.h"
#include "file/metadata.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// tokenizer.ggml.model "gpt2": byte-level BPE; tokenizer.ggml.pre names a row of the table of pre-tokenisers.
// "llama" and "t5": tokens/tokenizer_gguf_spm.h.
// Control and user-defined tokens are looked for in the text as it is. Errors: BadModel with fault File for a
// key that is missing, of a wrong type or length, out of range or contradictory; the key and the element
// index stand in `where`.
Result<TokenizerSpec> tokenizer_spec_from_gguf(const Metadata& metadata);

}  // namespace hone
