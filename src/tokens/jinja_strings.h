// String operations that filters and methods share.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja_arguments.h"
#include "tokens/jinja_value.h"
#include "tokens/unicode_case.h"

namespace hone::jinja {

// str.strip(chars): without `chars`, or with none, white space. Only the sides asked for.
Result<Value> strip(const Call& call, std::string_view text, const Value* chars, bool left, bool right);

// str.upper and str.lower.
std::string change_case(std::string_view text, LetterCase letter_case);
// str.capitalize: the first character in title case, the others in lower case.
std::string capitalize(std::string_view text);
// str.title: title case after what is no letter.
std::string title_words(std::string_view text);
// str.isupper and str.islower.
Result<bool> is_cased(const Call& call, std::string_view text, LetterCase letter_case);

// str.replace(from, to, count); no `count`, none and negative numbers mean all.
Result<Value> replace_text(const Call& call, std::string_view text, std::string_view from,
                           std::string_view to, const Value* count);

// str.center, ljust and rjust.
enum class Align : std::uint8_t { Left, Right, Center };
Result<Value> pad(const Call& call, std::string_view text, const Value* width, const Value* fill,
                  Align align);

// str.splitlines, without the ends of the lines or with them.
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends = false);

// Where `part` first stands in `text` at or after `from`, in linear time; npos if nowhere.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from = 0);

// The first `count` characters, or all.
std::string_view first_characters(std::string_view text, std::size_t count);

// `format % values` and format.format(...).
Result<Value> format_percent(const Call& call, std::string_view format, const Value& values);
Result<Value> format_braces(const Call& call, std::string_view format, const Arguments& arguments);

}  // namespace hone::jinja
