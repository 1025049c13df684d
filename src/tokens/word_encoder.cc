#include "tokens/word_encoder.h"

#include <array>
#include <fmt/format.h>

#include "tokens/bpe.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

struct EncoderRow {
  ModelSpec::Kind kind;
  std::string_view name;
  Result<std::unique_ptr<const WordEncoder>> (*make)(const TokenizerSpec&, const Vocabulary&);
};

constexpr std::array kEncoderRows{
    EncoderRow{ModelSpec::Kind::Bpe, "BPE", make_bpe_encoder},
};

std::string_view kind_name(ModelSpec::Kind kind) {
  switch (kind) {
    case ModelSpec::Kind::Bpe:
      return "BPE";
    case ModelSpec::Kind::SentencePieceBpe:
      return "SentencePiece BPE";
    case ModelSpec::Kind::Unigram:
      return "Unigram";
  }
  return "unknown";
}

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_word_encoder(const TokenizerSpec& spec,
                                                             const Vocabulary& vocabulary) {
  std::string names;
  for (const EncoderRow& row : kEncoderRows) {
    if (row.kind == spec.model.kind) return row.make(spec, vocabulary);
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return unsupported_tokenizer(spec.places.tokens, "tokenizer model", kind_name(spec.model.kind), names);
}

}  // namespace hone
