// What SentencePiece's models do with characters that have no piece, and the tables they share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/prefix_index.h"
#include "tokens/tokenizer_spec.h"
#include "tokens/vocabulary.h"

namespace hone {

// Bytes of the character at the start of `text`: 1 for a byte that starts none.
std::size_t spm_character(std::string_view text);

// Appends the ids of what has no piece.
class SpmUnknown {
 public:
  // Errors: those of make_spm_bpe_encoder.
  static Result<SpmUnknown> build(const TokenizerSpec& spec, const Vocabulary& vocabulary);

  // A character, or a run of them, without piece. `after_unknown`: what was appended last was one too.
  void append(std::string_view text, bool after_unknown, std::vector<std::int32_t>& out) const;

 private:
  std::array<std::int32_t, 256> byte_ids_{};
  std::optional<std::int32_t> unknown_;
  bool byte_fallback_ = false;
  bool fuse_ = false;
};

// A finite score for each token of the model.
Status check_scores(const TokenizerSpec& spec, const Vocabulary& vocabulary);

// The user-defined pieces of a vocabulary.
PrefixIndex user_defined_index(const Vocabulary& vocabulary);

}  // namespace hone
