#include "tokens/decoder.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tokens/byte_alphabet.h"
#include "tokens/spm_decoder.h"
#include "tokens/tokenizer_error.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// The byte of "<0x0A>".
std::optional<char> byte_of(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const int high = hex_digit(piece[3]);
  const int low = hex_digit(piece[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(16 * high + low));
}

std::string join(const std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) out += piece;
  return out;
}

void bytes_from_letters(std::vector<std::string>& pieces) {
  std::string out;
  for (const std::string& piece : pieces) {
    const std::size_t begin = out.size();
    if (decode_letters(piece, [&](char byte) { out += byte; })) continue;
    out.resize(begin);
    out += piece;
  }
  pieces.clear();
  pieces.push_back(std::move(out));
}

void bytes_from_names(std::vector<std::string>& pieces, bool raw_bytes) {
  std::vector<std::string> out;
  out.reserve(pieces.size());
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (raw_bytes || utf8_valid_prefix(bytes) == bytes.size()) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of(piece)) {
      bytes += *byte;
    } else {
      flush();
      out.push_back(std::move(piece));
    }
  }
  flush();
  pieces = std::move(out);
}

// Each byte that is no part of a well-formed character becomes U+FFFD.
std::string with_ill_formed_replaced(std::string text) {
  std::size_t valid = utf8_valid_prefix(text);
  if (valid == text.size()) return text;
  std::string out;
  for (std::string_view rest = text; !rest.empty(); valid = utf8_valid_prefix(rest)) {
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    out += kReplacementCharacter;
    rest.remove_prefix(1);
  }
  return out;
}

// Up to `start` copies of `content` off the begin and `stop` off the end.
void strip_piece(std::string& piece, std::string_view content, std::uint32_t start, std::uint32_t stop) {
  std::size_t begin = 0;
  while (start-- > 0 && piece.compare(begin, content.size(), content) == 0) begin += content.size();
  std::size_t end = piece.size();
  while (stop-- > 0 && end >= begin + content.size() &&
         piece.compare(end - content.size(), content.size(), content) == 0) {
    end -= content.size();
  }
  piece = piece.substr(begin, end - begin);
}

void replace_in(std::string& piece, const Expression& expression, std::string_view content,
                ExpressionScratch& scratch) {
  std::string out;
  std::size_t done = 0;
  // A token is short; one that exhausts the limit all the same stays as it is.
  const Status found = expression.for_each_match(piece, scratch, [&](std::uint32_t begin, std::uint32_t end) {
    out.append(piece, done, begin - done);
    out += content;
    done = end;
  });
  if (!found.ok()) return;
  out.append(piece, done);
  piece = std::move(out);
}

void replace_text(std::string& piece, std::string_view from, std::string_view to) {
  std::size_t at = piece.find(from);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (; at != std::string::npos; at = piece.find(from, done)) {
    out.append(piece, done, at - done);
    out += to;
    done = at + from.size();
  }
  out.append(piece, done);
  piece = std::move(out);
}

}  // namespace

Result<TextDecoder> TextDecoder::build(const TokenizerSpec& spec) {
  TextDecoder out;
  out.steps_.reserve(spec.decoder.size());
  for (std::size_t i = 0; i < spec.decoder.size(); ++i) {
    const DecoderStep& step = spec.decoder[i];
    const std::string where = table_element(spec.places.decoder, i);
    std::optional<Expression> expression;
    const bool needs_content =
        step.kind == DecoderStep::Kind::Strip || step.kind == DecoderStep::Kind::Metaspace;
    if ((needs_content && step.content.empty()) ||
        (step.kind == DecoderStep::Kind::Replace && step.pattern.text.empty())) {
      return bad_tokenizer(where, "a decoder step names the text that it works on");
    }
    if (step.kind == DecoderStep::Kind::Replace && step.pattern.is_expression) {
      expression = HONE_TRY(Expression::compile(step.pattern, where));
    }
    if (step.kind == DecoderStep::Kind::SentencePiece && spec.decoder.size() > 1) {
      return unsupported_tokenizer(where, "a decoder step beside", "SentencePiece", "none");
    }
    out.steps_.push_back({step, std::move(expression)});
  }
  out.sentencepiece_ = out.steps_.size() == 1 && out.steps_[0].spec.kind == DecoderStep::Kind::SentencePiece;
  out.only_bytes_ = out.steps_.size() == 1 && out.steps_[0].spec.kind == DecoderStep::Kind::ByteLevel;
  return out;
}

void TextDecoder::apply(const Step& step, bool fused, const DecodeOptions& options, Pieces& pieces) {
  const DecoderStep& spec = step.spec;
  switch (spec.kind) {
    case DecoderStep::Kind::ByteLevel:
      bytes_from_letters(pieces);
      break;
    case DecoderStep::Kind::ByteFallback:
      bytes_from_names(pieces, options.raw_bytes);
      break;
    case DecoderStep::Kind::Fuse:
      pieces.assign(1, join(pieces));
      break;
    case DecoderStep::Kind::Replace: {
      ExpressionScratch scratch;
      for (std::string& piece : pieces) {
        if (step.expression) {
          replace_in(piece, *step.expression, spec.content, scratch);
        } else {
          replace_text(piece, spec.pattern.text, spec.content);
        }
      }
      break;
    }
    case DecoderStep::Kind::Strip:
      for (std::string& piece : pieces) {
        strip_piece(piece, spec.content, fused && !options.at_start ? 0 : spec.start, spec.stop);
      }
      break;
    case DecoderStep::Kind::Metaspace:
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const bool first = i == 0 && options.at_start && spec.prepend != PrependScheme::Never;
        replace_text(pieces[i], spec.content, first ? "" : " ");
      }
      break;
    case DecoderStep::Kind::SentencePiece:
      break;  // alone, and works on ids: decode()
  }
}

std::string TextDecoder::decode(const Vocabulary& vocabulary, std::span<const std::int32_t> ids,
                                const DecodeOptions& options) const {
  if (sentencepiece_) {
    std::string text = decode_spm(vocabulary, ids, steps_[0].spec, {options.skip_special, options.at_start});
    if (options.raw_bytes) return text;
    return with_ill_formed_replaced(std::move(text));
  }
  const auto skipped = [&](std::int32_t id) {
    return id < 0 || id >= vocabulary.size() ||
           (options.skip_special && vocabulary.type(id) == TokenType::Control);
  };
  const bool as_they_are = only_bytes_ ? vocabulary.byte_level() : steps_.empty();
  std::string text;
  if (as_they_are) {
    for (const std::int32_t id : ids) {
      if (!skipped(id)) text += vocabulary.bytes(id);
    }
    return text;
  }
  Pieces pieces;
  pieces.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (skipped(id)) continue;
    text.clear();
    if (vocabulary.byte_level() && !vocabulary.raw(id)) {
      for (const char byte : vocabulary.bytes(id)) append_letter(text, byte);
    } else {
      text = vocabulary.bytes(id);
    }
    pieces.push_back(text);
  }
  bool fused = false;
  for (const Step& step : steps_) {
    apply(step, fused, options, pieces);
    fused =
        fused || step.spec.kind == DecoderStep::Kind::Fuse || step.spec.kind == DecoderStep::Kind::ByteLevel;
  }
  return join(pieces);
}

std::int64_t TextDecoder::heap_bytes() const {
  std::size_t bytes = steps_.capacity() * sizeof(Step);
  for (const Step& step : steps_) bytes += step.spec.content.capacity() + step.spec.pattern.text.capacity();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace hone
