#include "tokens/tokenizer_sentencepiece.h"

#include <string>
#include <utility>

#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

ModelSpec::Kind spec_kind(SentencePieceModel::Kind kind) {
  switch (kind) {
    case SentencePieceModel::Kind::Unigram:
      return ModelSpec::Kind::Unigram;
    case SentencePieceModel::Kind::Bpe:
      return ModelSpec::Kind::SentencePieceBpe;
    case SentencePieceModel::Kind::Word:
      return ModelSpec::Kind::SentencePieceWord;
    case SentencePieceModel::Kind::Char:
      return ModelSpec::Kind::SentencePieceChar;
  }
  return ModelSpec::Kind::Unigram;
}

void copy_pieces(const SentencePieceModel& model, ModelSpec& out, StringTable& fixed) {
  std::size_t bytes = 0;
  for (const SentencePieceModel::Piece& piece : model.pieces) bytes += piece.text.size();
  out.tokens.reserve(model.pieces.size(), bytes);
  out.types.reserve(model.pieces.size());
  out.scores.reserve(model.pieces.size());
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    out.tokens.push_back(piece.text);
    out.types.push_back(piece.type);
    out.scores.push_back(piece.score);
    if (piece.type == TokenType::UserDefined) fixed.push_back(piece.text);
  }
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec_from_sentencepiece(const SentencePieceModel& model,
                                                        std::string_view place) {
  if (!model.denormalizer.charsmap.empty()) {
    return unsupported_tokenizer(std::string(place), "the denormalizer", model.denormalizer.name, "none");
  }
  TokenizerSpec spec;
  const std::string where(place);
  spec.places = {where, where, where, where, where, where, where};
  spec.pre_tokenizer_name = "sentencepiece";
  const SpmNormaliserOptions options{model.normalizer.add_dummy_prefix,
                                     model.normalizer.remove_extra_whitespaces,
                                     model.normalizer.escape_whitespaces, model.treat_whitespace_as_suffix};
  NormaliserStep normaliser;
  normaliser.kind = NormaliserStep::Kind::SentencePiece;
  normaliser.content = model.normalizer.charsmap;
  normaliser.spm = options;
  copy_pieces(model, spec.model, normaliser.fixed);
  spec.normaliser.push_back(std::move(normaliser));
  spec.model.kind = spec_kind(model.kind);
  spec.model.unknown = model.unknown;
  spec.model.fuse_unknown = true;
  spec.model.byte_fallback = model.byte_fallback;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type != TokenType::Control) continue;
    AddedToken added;
    added.id = static_cast<std::int32_t>(id);
    added.content = model.pieces[id].text;
    added.special = true;
    spec.added_tokens.push_back(std::move(added));
  }
  DecoderStep decoder;
  decoder.kind = DecoderStep::Kind::SentencePiece;
  decoder.content = model.unknown_surface;
  decoder.spm = options;
  spec.decoder.push_back(std::move(decoder));
  spec.special.bos = model.bos;
  spec.special.eos = model.eos;
  spec.special.padding = model.padding;
  spec.special.unknown = model.unknown;
  return spec;
}

}  // namespace hone
