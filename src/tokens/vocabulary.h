// Tokens by id and ids by token: the flat tables that every model kind and the decoder share.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Immutable once built. A token is kept in the form in which words reach the model: where the pre-tokeniser
// has a ByteLevel step, its letters are turned back into bytes. A token that no word can reach (a control
// token, or one with a character outside of the byte alphabet) keeps its text and is `raw`.
class Vocabulary {
 public:
  // `byte_level`: tokens are written in the byte alphabet (tokens/byte_alphabet.h). Added tokens whose id is
  // past the model's, or whose place there is empty, become entries of their own. Errors: BadModel, place in
  // `where`: no tokens or too many; a token that is too long or stands twice; an added token that contradicts
  // the token of its id; more holes between the ids than tokens.
  static Result<Vocabulary> build(const TokenizerSpec& spec, bool byte_level);

  std::int32_t size() const { return static_cast<std::int32_t>(types_.size()); }
  // Empty for an id out of range and for a hole. Lives as long as the vocabulary.
  std::string_view bytes(std::int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const std::uint32_t begin = offsets_[static_cast<std::size_t>(id)];
    return {pool_.data() + begin, offsets_[static_cast<std::size_t>(id) + 1] - begin};
  }
  // Of an id in range.
  TokenType type(std::int32_t id) const {
    return static_cast<TokenType>(types_[static_cast<std::size_t>(id)] & 0x0FU);
  }
  bool raw(std::int32_t id) const { return (types_[static_cast<std::size_t>(id)] & 0x80U) != 0; }
  bool byte_level() const { return byte_level_; }

  // The token that is these bytes, among the raw ones or the others.
  std::optional<std::int32_t> find(std::string_view bytes, bool raw) const;
  // The token that the file writes like this: letters of the byte alphabet or raw text.
  std::optional<std::int32_t> find_written(std::string_view text) const;

  std::int64_t heap_bytes() const;

 private:
  friend class VocabularyBuilder;
  std::vector<char> pool_;              // bytes of all tokens, in id order
  std::vector<std::uint32_t> offsets_;  // [V+1] into pool_
  std::vector<std::uint8_t> types_;     // [V] TokenType; high bit: raw
  std::vector<std::uint64_t> slots_;    // [power of two >= 2V] upper half of the hash, and id; linear probing
  bool byte_level_ = false;
};

}  // namespace hone
