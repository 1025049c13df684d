// Byte-level tokenizers with tokens of the test's choice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "file/metadata.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace hone {

// The letter of GPT-2's byte alphabet.
inline std::string byte_letter(unsigned char byte) {
  const auto own = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  unsigned others = 0;
  for (unsigned b = 0; b < byte; ++b) others += own(b) ? 0 : 1;
  std::string out;
  append_utf8(out, own(byte) ? byte : 0x100 + others);
  return out;
}

inline std::string byte_letters(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += byte_letter(static_cast<unsigned char>(c));
  return out;
}

// Token i is texts[i]; nothing merges.
inline Result<Tokenizer> tokenizer_of_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> tokens;
  for (const std::string& text : texts) tokens.push_back(byte_letters(text));
  Metadata metadata("test");
  metadata.add_string("tokenizer.ggml.model", "gpt2");
  metadata.add_string("tokenizer.ggml.pre", "gpt-2");
  metadata.add_strings("tokenizer.ggml.tokens", tokens);
  metadata.add_strings("tokenizer.ggml.merges", std::vector<std::string>{});
  return Tokenizer::from_metadata(metadata);
}

}  // namespace hone
