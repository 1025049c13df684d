// tokenizer.ggml.* keys of SentencePiece's kinds -> TokenizerSpec.
#pragma once

#include "base/result.h"
#include "file/metadata.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// tokenizer.ggml.model "llama" (BPE by scores) and "t5" (unigram); false for any other.
bool is_spm_gguf(std::string_view model);

// Tokens, scores, token_type, add_space_prefix (true where it is missing), remove_extra_whitespaces (false),
// precompiled_charsmap; the roles and add_bos_token, add_eos_token with the defaults that llama.cpp has for
// the kind. Writers put blanks into user-defined tokens; they are turned back into U+2581. Errors: BadModel
// with the key and the element in `where`.
Result<TokenizerSpec> spm_spec_from_gguf(const Metadata& metadata, std::string_view model);

}  // namespace hone
