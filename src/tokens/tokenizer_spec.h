// A tokenizer as plain data, whatever file it was read from: the one thing that the readers (tokenizer_json,
// tokenizer_gguf, ..) fill and that Tokenizer::build turns into tables. Each step is named as in
// tokenizer.json of the `tokenizers` library (docs of tokenizers 0.23), which has the richest set; the other
// formats are special cases.
//
// A text becomes ids in this order: added tokens are cut out of the text as it is (normalized = false); the
// rest is normalised, added tokens with normalized = true are cut out of that; pre-tokeniser steps cut what
// is left into words; the model turns each word into ids; the post-processor adds tokens around all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/spm_normaliser.h"
#include "tokens/string_table.h"

namespace hone {

// tokenizer.ggml.token_type of the GGUF specification.
enum class TokenType : std::uint8_t {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

// What a Split or Replace looks for.
struct TextPattern {
  std::string text;
  bool is_expression = false;  // a regular expression in Oniguruma's syntax; else the text itself
};

struct NormaliserStep {
  enum class Kind : std::uint8_t {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    StripAccents,  // drops marks (general category M)
    Strip,         // white space at the ends: `left`, `right`
    Replace,       // each match of `pattern` becomes `content`
    Prepend,       // `content`, in front of a text that is not empty
    Precompiled,   // SentencePiece's character map: `content` holds its bytes
    SentencePiece  // all of its normaliser: `spm`, `fixed`; `content` holds the map's bytes, or nothing
  };
  Kind kind = Kind::Nfc;
  TextPattern pattern{};
  std::string content{};
  bool left = true;
  bool right = true;
  SpmNormaliserOptions spm{};
  StringTable fixed{};  // texts that SentencePiece's map leaves as they are
};

// What becomes of a match that cuts a text.
enum class SplitBehavior : std::uint8_t {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous  // as Isolated, neighbouring matches joined
};

// Where Metaspace puts its replacement in front.
enum class PrependScheme : std::uint8_t { Never, First, Always };

struct PreTokenizerStep {
  enum class Kind : std::uint8_t {
    Split,           // by `pattern`, `behavior`, `invert`
    ByteLevel,       // `add_prefix_space`; `use_regex`: GPT-2's expression. Bytes become letters
    Digits,          // `individual`: each digit alone, else runs of digits
    Metaspace,       // blanks become `replacement`; `prepend`; `split`
    Punctuation,     // `behavior`; a match is one character
    Whitespace,      // \w+|[^\w\s]+
    WhitespaceSplit  // runs without white space
  };
  Kind kind = Kind::Split;
  TextPattern pattern{};
  SplitBehavior behavior = SplitBehavior::Isolated;
  bool invert = false;  // the pattern matches what stays, not what cuts
  bool add_prefix_space = false;
  bool use_regex = false;
  bool individual = false;
  std::string replacement{};
  PrependScheme prepend = PrependScheme::Always;
  bool split = true;
};

struct ModelSpec {
  enum class Kind : std::uint8_t {
    Bpe,                // merges by rank, from `merges`
    SentencePieceBpe,   // any two neighbours whose joined text is a token; the highest score first
    Unigram,            // the cut with the largest sum of scores
    SentencePieceWord,  // a token for each word
    SentencePieceChar   // a token for each character
  };
  Kind kind = Kind::Bpe;
  StringTable tokens;            // by id, as the file writes them (bytes as letters where it is byte-level);
                                 // empty: no token has this id
  std::vector<TokenType> types;  // by id; empty: all Normal
  std::vector<float> scores;     // by id; SentencePieceBpe and Unigram
  StringTable merges;            // Bpe, by rank: left part 2i, right part 2i + 1
  std::optional<std::int32_t> unknown;  // id of what stands for a character without token; none: it vanishes
  bool fuse_unknown = false;            // neighbouring unknown characters become one token
  bool byte_fallback = false;           // such a character becomes its bytes, tokens "<0x00>" to "<0xFF>"
  bool ignore_merges = false;           // a word that is a token is that token, whatever the merges say
  std::string continuing_prefix;        // Bpe: before each character of a word but the first
  std::string end_suffix;               // Bpe: after the last character of a word
};

struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no letter, digit or underscore touches it
  bool lstrip = false;       // takes the white space on its left along
  bool rstrip = false;
  bool normalized = false;  // looked for in the normalised text
  bool special = false;     // a control token: EncodeOptions::parse_special, DecodeOptions::skip_special
};

struct DecoderStep {
  enum class Kind : std::uint8_t {
    ByteLevel,     // letters become bytes
    ByteFallback,  // "<0x0A>" becomes its byte
    Fuse,          // all pieces become one
    Replace,       // each match of `pattern` becomes `content`, inside each piece
    Strip,         // up to `start` times `content` at the begin of each piece, up to `stop` times at its end
    Metaspace,     // `content` becomes a blank; the first piece loses it unless `prepend` is Never
    SentencePiece  // all of its decoder: `spm`; `content` stands for the unknown token
  };
  Kind kind = Kind::ByteLevel;
  TextPattern pattern{};
  std::string content{};
  std::uint32_t start = 0;
  std::uint32_t stop = 0;
  PrependScheme prepend = PrependScheme::Always;
  SpmNormaliserOptions spm{};
};

// Ids of tokens with a role; absent where the file names none.
struct SpecialTokens {
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
  std::optional<std::int32_t> unknown;
  std::optional<std::int32_t> padding;
  std::optional<std::int32_t> end_of_turn;
};

// How the file calls its tables, for the place in errors: "tokenizer.ggml.merges" makes
// "tokenizer.ggml.merges[7]".
struct SpecPlaces {
  std::string tokens;
  std::string types;
  std::string merges;
  std::string pre_tokenizer;
  std::string normalizer;
  std::string decoder;
  std::string added_tokens;
};

struct TokenizerSpec {
  SpecPlaces places;
  std::string pre_tokenizer_name;  // how Tokenizer::pre_tokenizer_name calls it
  std::vector<NormaliserStep> normaliser;
  std::vector<PreTokenizerStep> pre_tokenizer;
  ModelSpec model;
  std::vector<AddedToken> added_tokens;
  std::vector<DecoderStep> decoder;
  // The post-processor: ids around every text that is encoded with EncodeOptions::add_special.
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
  SpecialTokens special;
  std::string chat_template;
};

}  // namespace hone
