// JSON with numbers as Python reads them: nlohmann's own reader makes a float of an integer beyond 64 bits.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// A JSON document in which an integer beyond 64 bits is a binary value, which JSON itself has not: its
// decimal digits. Of a key that stands twice in an object the last value counts, at the place of the first.
// Errors (BadInput): no JSON, or nested deeper than 512; `where` is `name` with the byte.
Result<nlohmann::ordered_json> parse_exact_json(std::string_view text, const std::string& name);

// The digits of an integer beyond 64 bits; nullopt for every other value.
std::optional<std::string> long_integer_digits(const nlohmann::ordered_json& value);

}  // namespace hone
