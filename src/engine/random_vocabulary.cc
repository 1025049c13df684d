#include "engine/random_vocabulary.h"

#include <string>
#include <vector>

#include "tokens/byte_alphabet.h"
#include "tokens/utf8.h"

namespace hone {

void add_random_vocabulary(std::int64_t vocabulary, GgufWriter& writer) {
  constexpr std::int32_t kNormal = 1;  // token types of GGUF
  constexpr std::int32_t kControl = 3;
  const auto count = static_cast<std::size_t>(vocabulary);
  std::vector<std::string> tokens;
  tokens.reserve(count);
  for (const std::uint16_t letter : kByteLetters) append_utf8(tokens.emplace_back(), letter);
  std::vector<std::string> merges;
  // Token 256 + i joins token i / 256 with byte i % 256: each left side stands before what is made of it.
  for (std::size_t i = 0; tokens.size() + 1 < count; ++i) {
    merges.push_back(tokens[i / 256] + " " + tokens[i % 256]);
    tokens.push_back(tokens[i / 256] + tokens[i % 256]);
  }
  tokens.emplace_back("<|endoftext|>");
  std::vector<std::int32_t> types(count, kNormal);
  types.back() = kControl;
  const auto last = static_cast<std::uint32_t>(vocabulary - 1);
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", "qwen2");
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  writer.add_strings("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.eos_token_id", last);
  writer.add_u32("tokenizer.ggml.padding_token_id", last);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
}

}  // namespace hone
