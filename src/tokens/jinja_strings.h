// String operations that filters and methods share.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja_arguments.h"
#include "tokens/jinja_value.h"

namespace hone::jinja {

// str.strip(chars): without `chars`, or with none, white space. Only the sides asked for.
Result<Value> strip(const Call& call, std::string_view text, const Value* chars, bool left, bool right);

// str.upper or str.lower, of ASCII alone: beyond it the mapping is refused.
Result<Value> change_case(const Call& call, std::string_view text, bool upper);

// str.replace(from, to, count); no `count`, none and negative numbers mean all. An empty `from` is refused.
Result<Value> replace_text(const Call& call, std::string_view text, std::string_view from,
                           std::string_view to, const Value* count);

// Where `part` first stands in `text` at or after `from`, in linear time; npos if nowhere.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);

}  // namespace hone::jinja
