// Tokens that are looked for in the text before anything cuts it: control tokens and what users added.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/expression.h"
#include "tokens/string_table.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

class Normaliser;

// A text is a row of pieces: tokens, and what lies between them.
struct AddedMatch {
  TextSpan span;  // with the white space that lstrip and rstrip take along
  std::int32_t id = 0;
};

// Immutable once built. One table holds the tokens with normalized = false, another one those with true.
class AddedTokens {
 public:
  // Tokens of `spec` whose flag `normalized` is that; the content of normalised ones is normalised first.
  // Errors: those of Normaliser::apply.
  static Result<AddedTokens> build(const TokenizerSpec& spec, bool normalized, const Normaliser& normaliser);

  bool empty() const { return texts_.empty(); }
  // All tokens in `text`, which need not be well-formed: leftmost first, and the longest where several start.
  // `special_too` = false passes over control tokens. Time is linear in text times the longest token.
  void find_all(std::string_view text, bool special_too, std::vector<AddedMatch>& out) const;

  std::int64_t heap_bytes() const;

 private:
  struct Entry {
    std::int32_t id;
    bool single_word;
    bool lstrip;
    bool rstrip;
    bool special;
  };

  const Entry* longest_at(std::string_view text, std::size_t& length) const;

  StringTable texts_;           // sorted by their bytes
  std::vector<Entry> entries_;  // beside texts_
  std::array<bool, 256> first_bytes_{};
};

}  // namespace hone
