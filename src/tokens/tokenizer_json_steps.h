// The small parts of tokenizer.json: lists of steps, each an object with a `type`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Each appends the steps of `value` (null: none; a Sequence: its parts) to `spec`. `where` names the value in
// errors. Errors: BadModel for a type that is not supported, by name, and for a field of a wrong kind.
Status add_normaliser(const nlohmann::json& value, const std::string& where, TokenizerSpec& spec);
Status add_pre_tokenizer(const nlohmann::json& value, const std::string& where, TokenizerSpec& spec);
Status add_post_processor(const nlohmann::json& value, const std::string& where, TokenizerSpec& spec);
Status add_decoder(const nlohmann::json& value, const std::string& where, TokenizerSpec& spec);

}  // namespace hone
