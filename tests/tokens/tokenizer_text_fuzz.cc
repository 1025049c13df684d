// Any bytes as text: with all 256 bytes in the vocabulary, decoding gives them back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "byte_vocabulary.h"
#include "tokens/stream_decoder.h"
#include "tokens/tokenizer.h"
#include "tokens/utf8.h"

namespace {

std::string letter(unsigned byte) {
  return hone::byte_letter(static_cast<unsigned char>(byte));
}

const hone::Tokenizer& tokenizer(const char* pre) {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  for (unsigned byte = 0; byte < 256; ++byte) tokens.push_back(letter(byte));
  tokens.insert(tokens.end(), {"th", "the", letter(' ') + "t", letter(' ') + letter(' '), "<s>", "<s>>"});
  types.assign(tokens.size(), 1);
  types[tokens.size() - 1] = 4;
  types[tokens.size() - 2] = 3;
  hone::Metadata metadata("fuzz");
  metadata.add_string("tokenizer.ggml.model", "gpt2");
  metadata.add_string("tokenizer.ggml.pre", pre);
  metadata.add_strings("tokenizer.ggml.tokens", tokens);
  metadata.add_integers("tokenizer.ggml.token_type", types);
  metadata.add_strings("tokenizer.ggml.merges", std::vector<std::string>{"t h", "th e", letter(' ') + " t",
                                                                         letter(' ') + " " + letter(' ')});
  auto built = hone::Tokenizer::from_metadata(metadata);
  if (!built.ok()) std::abort();
  return *new hone::Tokenizer(std::move(built).value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hone::Tokenizer* const tokenizers[] = {&tokenizer("gpt-2"), &tokenizer("smollm"),
                                                      &tokenizer("qwen2")};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const hone::Tokenizer* each : tokenizers) {
    const auto ids = each->encode(text);
    if (!ids.ok() || each->decode(*ids) != text) std::abort();
    hone::StreamDecoder stream(*each, {}, false);
    std::string streamed;
    for (const std::int32_t id : *ids) streamed += stream.push(id).text;
    streamed += stream.finish().text;
    if (streamed != hone::to_valid_utf8(text)) std::abort();
  }
  return 0;
}
