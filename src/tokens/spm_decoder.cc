#include "tokens/spm_decoder.h"

#include "tokens/sentencepiece_model.h"
#include "tokens/spm_normaliser.h"

namespace hone {

namespace {

void append_unescaped(std::string_view piece, std::string& out) {
  while (!piece.empty()) {
    const std::size_t at = piece.find(kSpmSpace);
    out.append(piece.substr(0, at));
    if (at == std::string_view::npos) return;
    out += ' ';
    piece.remove_prefix(at + kSpmSpace.size());
  }
}

}  // namespace

std::string decode_spm(const Vocabulary& vocabulary, std::span<const std::int32_t> ids,
                       const DecoderStep& step, const SpmDecoderOptions& options) {
  const bool strips = step.spm.add_dummy_prefix || step.spm.remove_extra_whitespaces;
  std::string out;
  // Until there is text, each piece loses one blank at its begin; only the first does where blanks are kept.
  bool at_begin = options.at_start && strips;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary.size()) continue;
    std::string_view piece = vocabulary.bytes(id);
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::Byte) {
      if (const auto byte = byte_of_piece(piece)) {
        out += static_cast<char>(*byte);
        continue;
      }
    }
    if (type == TokenType::Control) {
      if (!options.skip_special) out += piece;
      continue;
    }
    if (type == TokenType::Unknown) {
      out += step.content;
      continue;
    }
    if (!out.empty()) at_begin = false;
    if (at_begin && piece.starts_with(kSpmSpace)) {
      piece.remove_prefix(kSpmSpace.size());
      if (!step.spm.remove_extra_whitespaces) at_begin = false;
    }
    append_unescaped(piece, out);
  }
  return out;
}

}  // namespace hone
