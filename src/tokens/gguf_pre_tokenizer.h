// What a name in tokenizer.ggml.pre stands for.
#pragma once

#include <string_view>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Fills normaliser, pre_tokenizer, pre_tokenizer_name and model.ignore_merges of `spec`. Errors: BadModel for
// a name without a row, which lists those that there are.
Status fill_pre_tokenizer(std::string_view name, TokenizerSpec& spec);

}  // namespace hone
