// Cuts a normalised text into the words that a model's merges stay inside of: the steps of tokenizer.json's
// pre_tokenizer, in order, each inside the pieces that the one before it left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokens/expression.h"
#include "tokens/tokenizer_spec.h"

namespace hone {

// Working memory of one caller. Not to be shared between threads.
struct PreTokenizerScratch {
  ExpressionScratch expressions;
  std::vector<TextSpan> previous;
  std::string text;
  std::string other;
};

// Immutable once built.
class PreTokenizer {
 public:
  // Errors: BadModel for an expression that is refused (tokens/expression.h).
  static Result<PreTokenizer> build(const TokenizerSpec& spec);

  // There is a ByteLevel step: words are bytes, and the vocabulary is written in the byte alphabet.
  bool byte_level() const { return byte_level_; }

  // Words of `text`, well-formed UTF-8 under 2^31 bytes, as spans of the view returned: `text` itself, or
  // scratch.text where a step changes it. `at_start`: `text` begins the whole text. Error BadInput when an
  // expression runs out of its match limit, or when blanks grow the text beyond 2^31 - 1 bytes.
  Result<std::string_view> split(std::string_view text, bool at_start, PreTokenizerScratch& scratch,
                                 std::vector<TextSpan>& words) const;

  std::int64_t heap_bytes() const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { Cut, Prefix, Metaspace, Letters, Bytes };
    Kind kind = Kind::Cut;
    SplitBehavior behavior = SplitBehavior::Isolated;
    bool invert = false;
    PrependScheme prepend = PrependScheme::Never;
    std::string replacement{};
    std::optional<Expression> expression{};
  };

  Status add(const PreTokenizerStep& step, bool last, const std::string& where);
  Status add_cut(const TextPattern& pattern, SplitBehavior behavior, bool invert, const std::string& where);
  static Status cut(const Step& step, std::string_view text, PreTokenizerScratch& scratch,
                    std::vector<TextSpan>& words);
  static void rewrite(const Step& step, std::string_view text, bool at_start, std::string& out,
                      std::vector<TextSpan>& words);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace hone
