// Reader of tokenizer.model: SentencePiece's ModelProto (sentencepiece_model.proto) in protobuf's wire
// format.
//
// Input is hostile: every length is compared with the bytes left, nothing is allocated before its size is
// known, and each Error (BadFile) names the rule and the byte at which it is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Bounds of this reader; far above any published model.
struct SentencePieceLimits {
  static constexpr std::uint64_t kFileBytes = 64U << 20;
  static constexpr std::size_t kPieces = 1U << 20;
  static constexpr std::size_t kPieceBytes = 4096;
};

// Views point into the bytes that were read.
struct SentencePieceModel {
  enum class Kind : std::uint8_t { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };
  struct Piece {
    std::string_view text;
    float score = 0;
    TokenType type = TokenType::Normal;
  };
  // normalizer_spec and denormalizer_spec.
  struct Normalizer {
    std::string_view name;
    std::string_view charsmap;  // tokens/charsmap.h; empty: none
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
    bool escape_whitespaces = true;
  };

  Kind kind = Kind::Unigram;
  std::vector<Piece> pieces;  // by id
  Normalizer normalizer;
  Normalizer denormalizer;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  std::string_view unknown_surface = " \xE2\x81\x87 ";  // what the unknown piece decodes to
  std::int32_t unknown = 0;
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
  std::optional<std::int32_t> padding;
};

// `path` is named in errors. Errors (BadFile): broken wire format; no pieces or too many; a piece that is
// empty, too long, stands twice among the reserved or among the other ones, or whose score is not finite; not
// exactly one unknown piece; byte pieces without byte_fallback, or byte_fallback without all 256 of them.
Result<SentencePieceModel> parse_sentencepiece_model(std::span<const std::byte> bytes, std::string_view path);

// 10 for "<0x0A>"; nullopt for any other text.
std::optional<std::uint8_t> byte_of_piece(std::string_view piece);

}  // namespace hone
