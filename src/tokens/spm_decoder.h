// Ids -> text as SentencePiece decodes: U+2581 becomes a blank, byte pieces their bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tokens/tokenizer_spec.h"
#include "tokens/vocabulary.h"

namespace hone {

struct SpmDecoderOptions {
  bool skip_special = false;  // control pieces give nothing, else their text
  // Take off the blank that the normaliser put in front; false: the ids continue a text.
  bool at_start = true;
};

// `step`: a DecoderStep of kind SentencePiece. Ids out of range give nothing. The bytes of byte pieces stay
// as they are, also where they are no UTF-8 (SentencePiece makes each such byte U+FFFD; see to_valid_utf8).
std::string decode_spm(const Vocabulary& vocabulary, std::span<const std::int32_t> ids,
                       const DecoderStep& step, const SpmDecoderOptions& options);

}  // namespace hone
