// UTF-8 by the Unicode Standard, section 3.9: well-formed sequences are those of table 3-7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

// What stands at the start of a byte string.
struct Utf8Step {
  enum class Kind : std::uint8_t { Valid, Invalid, Truncated };
  Kind kind = Kind::Invalid;
  // Bytes of the character (Valid), of the maximal ill-formed part (Invalid, at least 1), or of the
  // well-formed beginning that the end of the text cuts off (Truncated).
  std::uint32_t length = 1;
  char32_t code_point = 0;  // Valid only
};

// `text` must not be empty.
Utf8Step utf8_step(std::string_view text);

// Length of the longest prefix of whole well-formed characters.
std::size_t utf8_valid_prefix(std::string_view text);

// Each maximal ill-formed part becomes one U+FFFD ("substitution of maximal subparts").
std::string to_valid_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

}  // namespace hone
