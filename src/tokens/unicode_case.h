// Case mappings of Unicode, by the rules of Python's str.upper, str.lower and str.title for one character.
#pragma once

#include <cstdint>
#include <string>

namespace hone {

enum class LetterCase : std::uint8_t { Upper, Lower, Title };

// Appends what `code_point` maps to: itself, another character, or up to three. U+03A3 (capital sigma), whose
// lower case depends on its place in the word, becomes U+03C3.
void append_case(std::string& out, char32_t code_point, LetterCase letter_case);

}  // namespace hone
