// Ids -> text: the tokens' texts, then the decoder steps of tokenizer.json in order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tokens/expression.h"
#include "tokens/tokenizer_spec.h"
#include "tokens/vocabulary.h"

namespace hone {

struct DecodeOptions {
  bool skip_special = false;  // leaves control tokens out
  // false: the ids continue a text that began earlier, so nothing is taken off its beginning.
  bool at_start = true;
  // Byte tokens that are no valid UTF-8: true keeps the bytes; false makes each U+FFFD, all that stand
  // together as the tokenizers library does, or those outside of characters as SentencePiece does. Byte-level
  // vocabularies keep them always.
  bool raw_bytes = false;
};

// Immutable once built.
class TextDecoder {
 public:
  // Errors: BadModel for an expression that is refused, or a SentencePiece step among others.
  static Result<TextDecoder> build(const TokenizerSpec& spec);

  // Ids out of range give nothing.
  std::string decode(const Vocabulary& vocabulary, std::span<const std::int32_t> ids,
                     const DecodeOptions& options) const;

  // A token that comes first and gives no text (a blank that is taken off) leaves the text unbegun:
  // SentencePiece takes blanks off until there is other text.
  bool takes_all_blanks_off() const { return sentencepiece_ && steps_[0].spec.spm.remove_extra_whitespaces; }

  std::int64_t heap_bytes() const;

 private:
  struct Step {
    DecoderStep spec;
    std::optional<Expression> expression;
  };
  using Pieces = std::vector<std::string>;
  static void apply(const Step& step, bool fused, const DecodeOptions& options, Pieces& pieces);

  std::vector<Step> steps_;
  bool only_bytes_ = false;     // one ByteLevel step
  bool sentencepiece_ = false;  // one SentencePiece step
};

}  // namespace hone
