// Unicode's normalisation forms (UAX 15), with the tables of utf8proc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

enum class UnicodeForm : std::uint8_t { C, D, KC, KD };

// Appends `text`, well-formed UTF-8, in that form. `code_points` is working memory. Time n log n: marks are
// sorted, however many follow each other.
void append_unicode_form(std::string& out, std::string_view text, UnicodeForm form,
                         std::vector<std::int32_t>& code_points);

}  // namespace hone
