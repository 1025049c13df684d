// JSON of foreign origin (RFC 8259), read into a tree within limits: config.json and the like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// The defaults bound the tree of a hostile text to some 30 MiB.
struct JsonLimits {
  std::uint64_t bytes = 1U << 20U;
  std::size_t depth = 64;  // objects and arrays inside each other
};

// The whole of `text` as one value. `path` is named in errors. Errors (BadFile): no valid JSON; NaN and
// Infinity, which JSON does not have; a number beyond f64; a key that repeats in its object; a limit. Each
// names line, column and byte, those behind the token that breaks the rule.
Result<nlohmann::json> parse_json(std::string_view text, std::string_view path,
                                  const JsonLimits& limits = {});

// The same, and the value must be an object.
Result<nlohmann::json> parse_json_object(std::string_view text, std::string_view path,
                                         const JsonLimits& limits = {});
Result<nlohmann::json> read_json_object(const std::string& path, const JsonLimits& limits = {});

// Heap that a tree takes, never less than what glibc's malloc gives it.
std::int64_t json_heap_bytes(const nlohmann::json& value);

// A broken rule at byte `offset` of `text`; `where` becomes "PATH, line LINE:COLUMN, byte OFFSET", lines and
// columns counted from 1 and columns in bytes.
Error bad_json_at(std::string_view text, std::string_view path, std::uint64_t offset, std::string message,
                  std::string expected, std::string actual);

// What the JSON library says of a broken text, without its prefix and position.
std::string json_reason(std::string_view what);

}  // namespace hone
