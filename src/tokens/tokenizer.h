// Text <-> token ids: byte-level byte-pair encoding as GGUF files carry it (tokenizer.ggml.model "gpt2").
//
// Encoding, in this order:
//   1. special tokens written in the text are cut out, leftmost first and the longest where several start;
//   2. the rest is cut into words by the expression that tokenizer.ggml.pre names (tokens/pre_tokenizer.h);
//   3. each word starts as single bytes and its adjacent pairs are merged, lowest rank first, leftmost on a
//   tie
//      (Sennrich et al. 2016; bytes as alphabet: Radford et al. 2019).
// A byte that has no token of its own vanishes: that is what the models were trained with.
// Text need not be valid UTF-8: each byte that is no part of a well-formed character is a word of its own.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "file/metadata.h"

namespace hone {

class PreTokenizer;

struct EncodeOptions {
  // false: a control token written in the text is plain text (user-defined tokens are recognised all the
  // same).
  bool parse_special = true;
  // true: adds the begin and end tokens if the file asks for them (tokenizer.ggml.add_bos_token,
  // add_eos_token). A chat template writes its begin token itself, so text that comes from a template is
  // encoded with false.
  bool add_special = true;
};

struct DecodeOptions {
  bool skip_special = false;  // leaves control tokens out
};

// Ids of tokens with a role; absent where the file names none.
struct SpecialTokens {
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
  std::optional<std::int32_t> unknown;
  std::optional<std::int32_t> padding;
  std::optional<std::int32_t> end_of_turn;
};

// tokenizer.ggml.token_type of the GGUF specification.
enum class TokenType : std::uint8_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

// Immutable after from_metadata; every const member may be called from several threads at once.
class Tokenizer {
 public:
  // Reads the tokenizer.* keys. Errors: BadModel with fault File for a key that is missing, of a wrong type
  // or length, out of range or contradictory; the key and the element index stand in `where`. Peak heap while
  // building is heap_bytes() plus less than 10% of it.
  static Result<Tokenizer> from_metadata(const Metadata& metadata);

  // What heap_bytes() of the tokenizer built from `metadata` will be, from one walk over the arrays.
  static Result<std::int64_t> predicted_heap_bytes(const Metadata& metadata);

  Tokenizer(Tokenizer&&) noexcept = default;
  Tokenizer& operator=(Tokenizer&&) noexcept = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer() = default;

  // Ids of `text`. Error BadInput when the text is longer than 2^31 - 1 bytes or the expression runs out of
  // its match limit.
  Result<std::vector<std::int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Bytes of `ids`, joined; not necessarily valid UTF-8 (see to_valid_utf8 in tokens/utf8.h). Ids out of
  // range give nothing.
  std::string decode(std::span<const std::int32_t> ids, DecodeOptions options = {}) const;

  // Bytes of one token; empty for an id out of range. Lives as long as the tokenizer.
  std::string_view token_bytes(std::int32_t id) const;
  std::optional<TokenType> token_type(std::int32_t id) const;
  // Id of a special token (any type but Normal) by its text.
  std::optional<std::int32_t> special_token_id(std::string_view text) const;

  std::int32_t vocab_size() const { return static_cast<std::int32_t>(types_.size()); }
  const SpecialTokens& special_tokens() const { return special_; }
  // Text of the named special token, empty when absent: what a chat template sees as bos_token and so on.
  std::string_view bos_text() const { return text_of(special_.bos); }
  std::string_view eos_text() const { return text_of(special_.eos); }
  std::string_view unknown_text() const { return text_of(special_.unknown); }
  std::string_view padding_text() const { return text_of(special_.padding); }
  // True for eos, end of turn, and control tokens whose text is an end of turn or of text by convention
  // ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "</s>").
  bool is_end_of_generation(std::int32_t id) const;
  // Empty when the file has no tokenizer.chat_template.
  std::string_view chat_template() const { return {chat_template_.data(), chat_template_.size()}; }
  // The row of the pre-tokeniser table in use, "smollm".
  std::string_view pre_tokenizer_name() const;
  bool adds_bos() const { return add_bos_; }
  bool adds_eos() const { return add_eos_; }

  // Capacity in bytes of every container held. The compiled expressions are shared by the whole process
  // (under 64 KiB a row) and are not counted.
  std::int64_t heap_bytes() const;

 private:
  friend class TokenizerBuilder;
  struct Merge {
    std::uint32_t left;
    std::uint32_t right;
    std::uint32_t merged;
  };

  Tokenizer() = default;
  std::string_view text_of(std::optional<std::int32_t> id) const;
  std::optional<std::uint32_t> find_token(std::string_view bytes, bool raw) const;
  std::uint32_t find_merge(std::uint32_t left, std::uint32_t right) const;  // rank, or kNone
  // Length in bytes and id of the longest special token at the start of `text`.
  std::optional<std::uint32_t> match_special(std::string_view text, bool control_too) const;
  Status encode_plain(std::string_view text, struct BpeScratch& scratch,
                      std::vector<std::int32_t>& out) const;
  void encode_word(std::string_view word, struct BpeScratch& scratch, std::vector<std::int32_t>& out) const;

  static constexpr std::uint32_t kNone = 0xffffffffU;

  // Flat tables, sizes fixed by from_metadata. V tokens, M merges.
  std::vector<char> pool_;                  // bytes of all tokens, in id order
  std::vector<std::uint32_t> offsets_;      // [V+1] into pool_
  std::vector<std::uint8_t> types_;         // [V] TokenType, high bit: not of the byte alphabet
  std::vector<std::uint32_t> token_slots_;  // [power of two >= 2V] id or kNone, linear probing
  std::vector<Merge> merges_;               // [M] by rank
  std::vector<std::uint32_t> merge_slots_;  // [power of two >= 2M] rank or kNone, linear probing
  std::vector<std::uint32_t> specials_;     // ids of the recognised tokens, sorted by their bytes
  std::vector<char> chat_template_;
  std::array<std::uint32_t, 256> byte_ids_{};    // kNone where the vocabulary lacks the byte
  std::array<bool, 256> special_first_bytes_{};  // bytes that start a special token
  const PreTokenizer* pre_tokenizer_ = nullptr;  // a row of the static table
  SpecialTokens special_;
  bool add_bos_ = false;
  bool add_eos_ = false;
};

}  // namespace hone
