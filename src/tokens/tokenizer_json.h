// tokenizer.json of the `tokenizers` library -> TokenizerSpec (format: docs and sources of tokenizers 0.23).
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// `text` is the file, `path` its name for errors. Roles (SpecialTokens) and the chat template are not in this
// file: tokens/tokenizer_config.h. Truncation and padding are the business of who calls encode. Errors:
// BadFile for broken JSON, with line, column and byte; BadModel for what is missing, of a wrong kind, or not
// supported, by name.
//
// `read_up_to`, if given, is called now and then with the byte up to which `text` is not read any more.
Result<TokenizerSpec> tokenizer_spec_from_json(std::string_view text, std::string_view path,
                                               const std::function<void(std::size_t)>& read_up_to = {});

}  // namespace hone
