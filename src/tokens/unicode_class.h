// Unicode general categories and properties, as far as templates need them to treat strings the way Python
// does.
#pragma once

#include <cstdint>
#include <optional>

namespace hone {

enum class Printable : std::uint8_t {
  Yes,
  No,       // control, format, surrogate, private use, or a separator other than the blank
  Unknown,  // not assigned in the Unicode version at hand; a newer one may have given it a meaning
};

Printable printable(char32_t code_point);

enum class UnicodeProperty : std::uint8_t {
  Letter,
  Decimal,
  Number,
  Uppercase,
  Lowercase,
  Titlecase,
  Cased,
  CaseIgnorable,
  NameStart,  // of an identifier
  NamePart,
};

// nullopt where the Unicode version at hand has not assigned the character.
std::optional<bool> has_property(char32_t code_point, UnicodeProperty property);

}  // namespace hone
