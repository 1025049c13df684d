#include "tokens/word_encoder.h"

#include <array>
#include <fmt/format.h>

#include "tokens/bpe.h"
#include "tokens/spm_bpe.h"
#include "tokens/spm_words.h"
#include "tokens/tokenizer_error.h"
#include "tokens/unigram.h"

namespace hone {

namespace {

struct EncoderRow {
  ModelSpec::Kind kind;
  std::string_view name;
  Result<std::unique_ptr<const WordEncoder>> (*make)(const TokenizerSpec&, const Vocabulary&);
};

constexpr std::array kEncoderRows{
    EncoderRow{ModelSpec::Kind::Bpe, "BPE", make_bpe_encoder},
    EncoderRow{ModelSpec::Kind::SentencePieceBpe, "SentencePiece BPE", make_spm_bpe_encoder},
    EncoderRow{ModelSpec::Kind::Unigram, "Unigram", make_unigram_encoder},
    EncoderRow{ModelSpec::Kind::SentencePieceWord, "SentencePiece words", make_spm_word_encoder},
    EncoderRow{ModelSpec::Kind::SentencePieceChar, "SentencePiece characters", make_spm_char_encoder},
};

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_word_encoder(const TokenizerSpec& spec,
                                                             const Vocabulary& vocabulary) {
  std::string names;
  for (const EncoderRow& row : kEncoderRows) {
    if (row.kind == spec.model.kind) return row.make(spec, vocabulary);
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return unsupported_tokenizer(spec.places.tokens, "tokenizer model",
                               fmt::format("kind {}", static_cast<int>(spec.model.kind)), names);
}

}  // namespace hone
