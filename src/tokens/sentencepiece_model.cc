#include "tokens/sentencepiece_model.h"

#include <array>
#include <bit>
#include <cmath>
#include <fmt/format.h>

#include "tokens/protobuf_reader.h"
#include "tokens/token_hash.h"

namespace hone {

namespace {

constexpr std::uint32_t kNoSpmPiece = 0xFFFFFFFFU;

// Field numbers of sentencepiece_model.proto.
enum ModelField : std::uint8_t {
  kModelPieces = 1,
  kModelTrainer = 2,
  kModelNormalizer = 3,
  kModelDenormalizer = 5
};
enum PieceField : std::uint8_t { kPieceText = 1, kPieceScore = 2, kPieceType = 3 };
enum TrainerField : std::uint8_t {
  kTrainerModelType = 3,
  kTrainerWhitespaceAsSuffix = 24,
  kTrainerByteFallback = 35,
  kTrainerUnknownSurface = 44,
  kTrainerBosPiece = 46,
  kTrainerEosPiece = 47,
  kTrainerPaddingPiece = 48
};
enum NormalizerField : std::uint8_t {
  kNormalizerName = 1,
  kNormalizerCharsmap = 2,
  kNormalizerDummyPrefix = 3,
  kNormalizerRemoveWhitespace = 4,
  kNormalizerEscapeWhitespace = 5
};

bool is_reserved_type(TokenType type) {
  return type == TokenType::Unknown || type == TokenType::Control || type == TokenType::Byte;
}

class SpmModelParser {
 public:
  using Piece = SentencePieceModel::Piece;

  SpmModelParser(std::string_view bytes, std::string_view path) : bytes_(bytes), path_(path) {}

  Result<SentencePieceModel> parse() {
    if (bytes_.size() > SentencePieceLimits::kFileBytes) {
      return fail(0, "a SentencePiece model has at most 64 MiB", fmt::format("{} bytes", bytes_.size()));
    }
    HONE_TRY(count_pieces());
    ProtobufReader reader(bytes_, 0, path_);
    while (!reader.done()) {
      const ProtobufField field = HONE_TRY(reader.next());
      if (field.number == kModelPieces) HONE_TRY(read_piece(reader.inside(field), field.at));
      if (field.number == kModelTrainer) HONE_TRY(read_trainer(reader, field));
      if (field.number == kModelNormalizer) HONE_TRY(read_normalizer(reader, field, out_.normalizer));
      if (field.number == kModelDenormalizer) HONE_TRY(read_normalizer(reader, field, out_.denormalizer));
    }
    HONE_TRY(check_roles());
    HONE_TRY(check_distinct());
    HONE_TRY(find_named());
    return std::move(out_);
  }

 private:
  Error fail(std::uint64_t at, std::string message, std::string actual, std::string expected = {}) const {
    return bad_file_at(path_, at, std::move(message), std::move(expected), std::move(actual));
  }

  std::uint64_t place(const Piece& piece) const {
    return static_cast<std::uint64_t>(piece.text.data() - bytes_.data());
  }

  Status count_pieces() {
    std::size_t count = 0;
    ProtobufReader reader(bytes_, 0, path_);
    while (!reader.done()) {
      const ProtobufField field = HONE_TRY(reader.next());
      if (field.number != kModelPieces) continue;
      HONE_TRY(reader.expect(field, ProtobufField::Wire::Bytes));
      if (++count > SentencePieceLimits::kPieces) {
        return fail(field.at, "a vocabulary has at most 2^20 pieces", "more");
      }
    }
    if (count == 0) return fail(0, "a SentencePiece model has pieces", "none");
    out_.pieces.reserve(count);
    return {};
  }

  Status read_piece(ProtobufReader reader, std::uint64_t at) {
    Piece piece;
    while (!reader.done()) {
      const ProtobufField field = HONE_TRY(reader.next());
      switch (field.number) {
        case kPieceText:
          HONE_TRY(reader.expect(field, ProtobufField::Wire::Bytes));
          piece.text = field.bytes;
          break;
        case kPieceScore:
          HONE_TRY(reader.expect(field, ProtobufField::Wire::Fixed32));
          piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
          if (!std::isfinite(piece.score)) {
            return fail(field.at, "the score of a piece is a finite number",
                        fmt::format("{} of piece {}", piece.score, out_.pieces.size()));
          }
          break;
        case kPieceType:
          HONE_TRY(reader.expect(field, ProtobufField::Wire::Varint));
          if (field.value < 1 || field.value > 6) {
            return fail(field.at, "the type of a piece is a number from 1 to 6",
                        fmt::format("{} of piece {}", field.value, out_.pieces.size()));
          }
          piece.type = static_cast<TokenType>(field.value);
          break;
        default:
          break;
      }
    }
    if (piece.text.empty() || piece.text.size() > SentencePieceLimits::kPieceBytes) {
      return fail(at, "a piece has from 1 to 4096 bytes",
                  fmt::format("{} of piece {}", piece.text.size(), out_.pieces.size()));
    }
    out_.pieces.push_back(piece);
    return {};
  }

  Status read_trainer(const ProtobufReader& outer, const ProtobufField& message) {
    HONE_TRY(outer.expect(message, ProtobufField::Wire::Bytes));
    ProtobufReader reader = outer.inside(message);
    while (!reader.done()) {
      const ProtobufField field = HONE_TRY(reader.next());
      HONE_TRY(read_trainer_field(reader, field));
    }
    return {};
  }

  Status read_trainer_field(const ProtobufReader& reader, const ProtobufField& field) {
    switch (field.number) {
      case kTrainerModelType:
        return read_kind(reader, field);
      case kTrainerWhitespaceAsSuffix:
        return read_bool(reader, field, out_.treat_whitespace_as_suffix);
      case kTrainerByteFallback:
        return read_bool(reader, field, out_.byte_fallback);
      case kTrainerUnknownSurface:
        return read_text(reader, field, out_.unknown_surface);
      case kTrainerBosPiece:
        return read_text(reader, field, bos_);
      case kTrainerEosPiece:
        return read_text(reader, field, eos_);
      case kTrainerPaddingPiece:
        return read_text(reader, field, padding_);
      default:
        return {};
    }
  }

  Status read_kind(const ProtobufReader& reader, const ProtobufField& field) {
    HONE_TRY(reader.expect(field, ProtobufField::Wire::Varint));
    if (field.value < 1 || field.value > 4) {
      return fail(field.at, "the model type is 1 (unigram), 2 (bpe), 3 (word) or 4 (char)",
                  fmt::format("{}", field.value));
    }
    out_.kind = static_cast<SentencePieceModel::Kind>(field.value);
    return {};
  }

  Status read_normalizer(const ProtobufReader& outer, const ProtobufField& message,
                         SentencePieceModel::Normalizer& out) const {
    HONE_TRY(outer.expect(message, ProtobufField::Wire::Bytes));
    ProtobufReader reader = outer.inside(message);
    while (!reader.done()) {
      const ProtobufField field = HONE_TRY(reader.next());
      HONE_TRY(read_normalizer_field(reader, field, out));
    }
    return {};
  }

  static Status read_normalizer_field(const ProtobufReader& reader, const ProtobufField& field,
                                      SentencePieceModel::Normalizer& out) {
    switch (field.number) {
      case kNormalizerName:
        return read_text(reader, field, out.name);
      case kNormalizerCharsmap:
        return read_text(reader, field, out.charsmap);
      case kNormalizerDummyPrefix:
        return read_bool(reader, field, out.add_dummy_prefix);
      case kNormalizerRemoveWhitespace:
        return read_bool(reader, field, out.remove_extra_whitespaces);
      case kNormalizerEscapeWhitespace:
        return read_bool(reader, field, out.escape_whitespaces);
      default:
        return {};
    }
  }

  static Status read_bool(const ProtobufReader& reader, const ProtobufField& field, bool& out) {
    HONE_TRY(reader.expect(field, ProtobufField::Wire::Varint));
    out = field.value != 0;
    return {};
  }

  static Status read_text(const ProtobufReader& reader, const ProtobufField& field, std::string_view& out) {
    HONE_TRY(reader.expect(field, ProtobufField::Wire::Bytes));
    out = field.bytes;
    return {};
  }

  // One unknown piece; bytes all or none.
  Status check_roles() {
    std::optional<std::int32_t> unknown;
    std::array<bool, 256> bytes{};
    std::size_t found = 0;
    for (std::size_t id = 0; id < out_.pieces.size(); ++id) {
      const Piece& piece = out_.pieces[id];
      if (piece.type == TokenType::Unknown) {
        if (unknown) return fail(place(piece), "one piece stands for the unknown", "a second one");
        unknown = static_cast<std::int32_t>(id);
      }
      if (piece.type != TokenType::Byte) continue;
      const auto byte = byte_of_piece(piece.text);
      if (!out_.byte_fallback || !byte) {
        return fail(place(piece),
                    out_.byte_fallback ? "a byte piece is written <0x00> to <0xFF>"
                                       : "byte pieces go with byte_fallback",
                    printable(piece.text));
      }
      found += bytes[*byte] ? 0 : 1;
      bytes[*byte] = true;
    }
    if (!unknown) return fail(0, "one piece stands for the unknown", "none");
    if (out_.byte_fallback && found != bytes.size()) {
      return fail(0, "byte_fallback needs a piece for each of the 256 bytes", fmt::format("{}", found));
    }
    out_.unknown = *unknown;
    return {};
  }

  // Reserved pieces are names of their own: a text may be both.
  Status check_distinct() const {
    constexpr std::size_t kMostProbes = 4096;
    std::vector<std::uint32_t> slots(slots_for(out_.pieces.size()), kNoSpmPiece);
    const std::size_t mask = slots.size() - 1;
    for (std::uint32_t id = 0; id < out_.pieces.size(); ++id) {
      const Piece& piece = out_.pieces[id];
      std::size_t slot = hash_bytes(piece.text) & mask;
      for (std::size_t probes = 0; slots[slot] != kNoSpmPiece; slot = (slot + 1) & mask) {
        const Piece& other = out_.pieces[slots[slot]];
        if (other.text == piece.text && is_reserved_type(other.type) == is_reserved_type(piece.type)) {
          return fail(place(piece), "each piece stands once in a vocabulary",
                      fmt::format("{}, piece {}, again as {}", printable(piece.text), slots[slot], id));
        }
        if (++probes == kMostProbes) {
          return fail(place(piece), "few pieces have the same hash", fmt::format("{}", probes));
        }
      }
      slots[slot] = id;
    }
    return {};
  }

  Status find_named() {
    for (std::size_t id = 0; id < out_.pieces.size(); ++id) {
      const Piece& piece = out_.pieces[id];
      if (piece.type != TokenType::Control) continue;
      const auto number = static_cast<std::int32_t>(id);
      if (piece.text == bos_) out_.bos = number;
      if (piece.text == eos_) out_.eos = number;
      if (piece.text == padding_) out_.padding = number;
    }
    return {};
  }

  std::string_view bytes_;
  std::string_view path_;
  SentencePieceModel out_;
  std::string_view bos_ = "<s>";
  std::string_view eos_ = "</s>";
  std::string_view padding_ = "<pad>";
};

}  // namespace

Result<SentencePieceModel> parse_sentencepiece_model(std::span<const std::byte> bytes,
                                                     std::string_view path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return SpmModelParser(text, path).parse();
}

std::optional<std::uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : piece.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'A' || c > 'F')) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'A' + 10);
  }
  return static_cast<std::uint8_t>(value);
}

}  // namespace hone
