// Unicode general categories, as far as printing a string the way Python does needs them.
#pragma once

#include <cstdint>

namespace hone {

enum class Printable : std::uint8_t {
  Yes,
  No,       // control, format, surrogate, private use, or a separator other than the blank
  Unknown,  // not assigned in the Unicode version at hand; a newer one may have given it a meaning
};

Printable printable(char32_t code_point);

}  // namespace hone
