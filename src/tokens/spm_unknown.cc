#include "tokens/spm_unknown.h"

#include <cmath>
#include <fmt/format.h>

#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer_error.h"
#include "tokens/utf8.h"

namespace hone {

std::size_t spm_character(std::string_view text) {
  const Utf8Step step = utf8_step(text);
  return step.kind == Utf8Step::Kind::Valid ? step.length : 1;
}

Result<SpmUnknown> SpmUnknown::build(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  SpmUnknown out;
  out.unknown_ = spec.model.unknown;
  out.byte_fallback_ = spec.model.byte_fallback;
  out.fuse_ = spec.model.fuse_unknown;
  if (!out.byte_fallback_) {
    if (out.unknown_) return out;
    return bad_tokenizer(spec.places.tokens, "a vocabulary without byte pieces has an unknown piece", {},
                         "none");
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto id = vocabulary.find_written(fmt::format("<0x{:02X}>", byte));
    if (!id) {
      return bad_tokenizer(spec.places.tokens, "byte fallback needs a piece for each of the 256 bytes",
                           fmt::format("<0x{:02X}>", byte), "none");
    }
    out.byte_ids_[byte] = *id;
  }
  return out;
}

void SpmUnknown::append(std::string_view text, bool after_unknown, std::vector<std::int32_t>& out) const {
  if (byte_fallback_) {
    for (const char c : text) out.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  } else if (unknown_ && !(fuse_ && after_unknown)) {
    out.push_back(*unknown_);
  }
}

Status check_scores(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  const std::vector<float>& scores = spec.model.scores;
  if (scores.size() < spec.model.tokens.size() || vocabulary.size() < 1) {
    return bad_tokenizer(spec.places.tokens, "each piece has a score",
                         fmt::format("{}", spec.model.tokens.size()), fmt::format("{}", scores.size()));
  }
  for (std::size_t id = 0; id < scores.size(); ++id) {
    if (std::isfinite(scores[id])) continue;
    return bad_tokenizer(table_element(spec.places.tokens, id), "the score of a piece is a finite number", {},
                         fmt::format("{}", scores[id]));
  }
  return {};
}

PrefixIndex user_defined_index(const Vocabulary& vocabulary) {
  std::vector<PrefixIndex::Key> keys;
  std::size_t count = 0;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    count += vocabulary.type(id) == TokenType::UserDefined ? 1 : 0;
  }
  keys.reserve(count);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) != TokenType::UserDefined || vocabulary.bytes(id).empty()) continue;
    keys.push_back({vocabulary.bytes(id), static_cast<std::uint32_t>(id)});
  }
  return PrefixIndex(std::move(keys));
}

}  // namespace hone
