// What stands beside tokenizer.json or tokenizer.model: which token has which role, and the chat template.
#pragma once

#include <string>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Reads tokenizer_config.json, special_tokens_map.json and chat_template.jinja of `folder`, each where it
// exists, and fills spec.special and spec.chat_template. Where two files name a role, tokenizer_config.json
// wins; chat_template.jinja wins over a template in it. Of several templates the one named "default" counts.
// A role whose token is not in the vocabulary is left out. add_bos_token and add_eos_token have no effect:
// beside a tokenizer.json its post-processor decides. Errors: BadFile for broken JSON, BadModel for a
// template of a wrong kind.
Status fill_from_config(const std::string& folder, TokenizerSpec& spec);

// Beside a tokenizer.model, which says nothing of these: added_tokens_decoder of tokenizer_config.json gives
// tokens with ids of their own (looked for in the text as it is, whatever `normalized` says), add_bos_token
// and add_eos_token put the roles of spec.special around a text. Where a key is missing, tokenizer_class
// decides as in the transformers library: Llama's and Gemma's begin with bos, T5's ends with eos. Call it
// after fill_from_config. Errors: BadModel for a token that is to be added and has no id, or an entry of a
// wrong kind.
Status fill_around_from_config(const std::string& folder, TokenizerSpec& spec);

}  // namespace hone
