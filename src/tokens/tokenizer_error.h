// Errors of a tokenizer's tables and steps, built the same way by every reader and builder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace hone {

// A longer token is no word of any language; the bound keeps the search for added tokens linear in the text.
inline constexpr std::size_t kMaxTokenBytes = 4096;
inline constexpr std::uint64_t kMaxTokens = (1U << 30) - 1;
// A table at most half full needs a few dozen probes; thousands mean a vocabulary made to collide.
inline constexpr std::size_t kMaxProbes = 4096;

inline Error bad_tokenizer(std::string where, std::string message, std::string expected = {},
                           std::string actual = {}) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               std::move(message),
               std::move(expected),
               std::move(actual),
               "convert the model again from its original"};
}

inline std::string table_element(std::string_view table, std::uint64_t index) {
  return fmt::format("{}[{}]", table, index);
}

// What hone cannot do yet, by the name that the file gives it.
inline Error unsupported_tokenizer(std::string where, std::string_view what, std::string_view name,
                                   std::string expected) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               fmt::format("{} '{}' is not supported", what, name.substr(0, 80)),
               std::move(expected),
               std::string(name.substr(0, 80)),
               "use a model whose tokenizer needs only these"};
}

}  // namespace hone
