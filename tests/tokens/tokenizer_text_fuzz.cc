// Any bytes as text, through each kind of encoder. With all 256 bytes in the vocabulary and no normaliser
// decoding gives the text back; of the others, ids are tokens, and the streamed text is the decoded one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
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

// "llama": SentencePiece's BPE; "t5": its unigram model. Pieces overlap, so that there is something to
// choose.
const hone::Tokenizer& sentencepiece(const char* model, bool bytes) {
  const std::string blank = "\u2581";
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int64_t> types = {2, 3, 3};
  if (bytes) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      tokens.push_back(fmt::format("<0x{:02X}>", byte));
      types.push_back(6);
    }
  }
  for (const char* piece :
       {"a", "b", "t", "h", "e", "aa", "aaa", "ab", "ba", "th", "he", "the", "\u00e9", "\u4e2d", "\u4e2da"}) {
    tokens.emplace_back(piece);
    tokens.push_back(blank + piece);
  }
  tokens.insert(tokens.end(), {blank, blank + blank, "<own>"});
  types.resize(tokens.size(), 1);
  types.back() = 4;
  std::vector<double> scores;
  for (std::size_t i = 0; i < tokens.size(); ++i) scores.push_back(-static_cast<double>(i % 17));
  hone::Metadata metadata("fuzz");
  metadata.add_string("tokenizer.ggml.model", model);
  metadata.add_strings("tokenizer.ggml.tokens", tokens);
  metadata.add_integers("tokenizer.ggml.token_type", types);
  metadata.add_reals("tokenizer.ggml.scores", scores);
  auto built = hone::Tokenizer::from_metadata(metadata);
  if (!built.ok()) std::abort();
  return *new hone::Tokenizer(std::move(built).value());
}

std::string streamed(const hone::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  hone::StreamDecoder stream(tokenizer, {}, false);
  std::string out;
  for (const std::int32_t id : ids) out += stream.push(id).text;
  return out + stream.finish().text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const hone::Tokenizer* const tokenizers[] = {&tokenizer("gpt-2"), &tokenizer("smollm"),
                                                      &tokenizer("llama-bpe")};
  // Normalised: NFC; what follows are other models.
  static const hone::Tokenizer* const others[] = {&tokenizer("qwen2"), &sentencepiece("llama", true),
                                                  &sentencepiece("llama", false), &sentencepiece("t5", true),
                                                  &sentencepiece("t5", false)};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const hone::Tokenizer* each : tokenizers) {
    const auto ids = each->encode(text);
    if (!ids.ok() || each->decode(*ids) != text) std::abort();
    if (streamed(*each, *ids) != hone::to_valid_utf8(text)) std::abort();
  }
  for (const hone::Tokenizer* each : others) {
    const auto ids = each->encode(text);
    if (!ids.ok()) std::abort();
    for (const std::int32_t id : *ids) {
      if (!each->token_type(id)) std::abort();
    }
    if (streamed(*each, *ids) != hone::to_valid_utf8(each->decode(*ids))) std::abort();
  }
  return 0;
}
