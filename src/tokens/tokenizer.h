// Text <-> token ids. What happens to a text, in which order, stands in tokens/tokenizer_spec.h; each step
// has a file of its own: added_tokens, normaliser, pre_tokenizer, word_encoder, decoder.
//
// Text need not be valid UTF-8: each byte that is no part of a well-formed character is a word of its own. A
// byte that has no token vanishes, unless the model names an unknown token. SentencePiece's normaliser makes
// each such byte U+FFFD.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "file/metadata.h"
#include "tokens/added_tokens.h"
#include "tokens/decoder.h"
#include "tokens/normaliser.h"
#include "tokens/pre_tokenizer.h"
#include "tokens/tokenizer_spec.h"
#include "tokens/vocabulary.h"
#include "tokens/word_encoder.h"

namespace hone {

struct EncodeOptions {
  // false: a control token written in the text is plain text (user-defined tokens are recognised all the
  // same).
  bool parse_special = true;
  // true: adds the tokens that the file asks for around a text (a post-processor;
  // tokenizer.ggml.add_bos_token, add_eos_token). A chat template writes its begin token itself, so text that
  // comes from a template is encoded with false.
  bool add_special = true;
};

// Immutable once built; every const member may be called from several threads at once.
class Tokenizer {
 public:
  // Errors: BadModel with fault File for what contradicts itself or is not supported; the table and the
  // element stand in `where`.
  static Result<Tokenizer> build(const TokenizerSpec& spec);

  // From the tokenizer.* keys of a GGUF file (tokens/tokenizer_gguf.h).
  static Result<Tokenizer> from_metadata(const Metadata& metadata);

  Tokenizer(Tokenizer&&) noexcept = default;
  Tokenizer& operator=(Tokenizer&&) noexcept = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer() = default;

  // Ids of `text`. Error BadInput when the text is longer than 2^31 - 1 bytes or an expression runs out of
  // its match limit.
  Result<std::vector<std::int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Bytes of `ids`, joined; not necessarily valid UTF-8 (see to_valid_utf8 in tokens/utf8.h). Ids out of
  // range give nothing.
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const;
  // TextDecoder's of that name.
  bool takes_all_blanks_off() const { return decoder_.takes_all_blanks_off(); }

  // Bytes of one token as words have them, not as decode writes them; empty for an id out of range. Lives as
  // long as the tokenizer.
  std::string_view token_bytes(std::int32_t id) const { return vocabulary_->bytes(id); }
  std::optional<TokenType> token_type(std::int32_t id) const;
  // Id of a special token (any type but Normal) by its text.
  std::optional<std::int32_t> special_token_id(std::string_view text) const;

  // Ids are under it; some may have no token.
  std::int32_t vocab_size() const { return vocabulary_->size(); }
  const SpecialTokens& special_tokens() const { return special_; }
  // Text of the named special token, empty when absent: what a chat template sees as bos_token and so on.
  std::string_view bos_text() const { return text_of(special_.bos); }
  std::string_view eos_text() const { return text_of(special_.eos); }
  std::string_view unknown_text() const { return text_of(special_.unknown); }
  std::string_view padding_text() const { return text_of(special_.padding); }
  // True for eos, end of turn, and control tokens whose text is an end of turn or of text by convention
  // ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "</s>").
  bool is_end_of_generation(std::int32_t id) const;
  // Empty when the file has none.
  std::string_view chat_template() const { return {chat_template_.data(), chat_template_.size()}; }
  // The row of the pre-tokeniser table in use, "smollm", or "tokenizer.json".
  std::string_view pre_tokenizer_name() const {
    return {pre_tokenizer_name_.data(), pre_tokenizer_name_.size()};
  }
  // Encoding with add_special begins with bos, ends with eos.
  bool adds_bos() const { return special_.bos && !before_.empty() && before_.front() == *special_.bos; }
  bool adds_eos() const { return special_.eos && !after_.empty() && after_.back() == *special_.eos; }

  // Capacity in bytes of every container held, without the compiled expressions.
  std::int64_t heap_bytes() const;
  // What loading it took beyond heap_bytes() and gave back: the TokenizerSpec. 0 unless it comes from
  // load_tokenizer.
  std::int64_t loading_bytes() const { return loading_bytes_; }
  void set_loading_bytes(std::int64_t bytes) { loading_bytes_ = bytes; }

 private:
  struct Scratch;

  Tokenizer() = default;
  std::string_view text_of(std::optional<std::int32_t> id) const {
    return id ? token_bytes(*id) : std::string_view{};
  }
  // A text without the tokens that are looked for in it as it is.
  Status encode_segment(std::string_view text, bool at_start, const EncodeOptions& options, Scratch& scratch,
                        std::vector<std::int32_t>& out) const;
  // As above, well-formed and normalised.
  Status encode_normalised(std::string_view text, bool at_start, const EncodeOptions& options,
                           Scratch& scratch, std::vector<std::int32_t>& out) const;
  Status encode_words(std::string_view text, bool at_start, Scratch& scratch,
                      std::vector<std::int32_t>& out) const;

  std::unique_ptr<const Vocabulary> vocabulary_;  // at an address of its own: the encoder points to it
  std::unique_ptr<const WordEncoder> encoder_;
  Normaliser normaliser_;
  PreTokenizer pre_tokenizer_;
  AddedTokens raw_added_;         // looked for in the text as it is
  AddedTokens normalised_added_;  // in the normalised text
  TextDecoder decoder_;
  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> after_;
  std::vector<char> chat_template_;
  std::vector<char> pre_tokenizer_name_;
  SpecialTokens special_;
  std::int64_t loading_bytes_ = 0;
};

}  // namespace hone
