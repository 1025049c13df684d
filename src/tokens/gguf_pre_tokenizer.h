// What a name in tokenizer.ggml.pre stands for.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Fills normaliser, pre_tokenizer, pre_tokenizer_name and model.ignore_merges of `spec`. Errors: BadModel for
// a name without a row, which lists those that there are.
Status fill_pre_tokenizer(std::string_view name, TokenizerSpec& spec);

// The way back: the first name whose row cuts texts as `spec` does, however it is spelt (ByteLevel's own
// expression, Digits). nullopt where none does.
std::optional<std::string_view> gguf_pre_tokenizer_name(const TokenizerSpec& spec);

// All names, with commas.
std::string gguf_pre_tokenizer_names();

}  // namespace hone
