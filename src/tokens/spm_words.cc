#include "tokens/spm_words.h"

#include "tokens/spm_normaliser.h"
#include "tokens/spm_unknown.h"

namespace hone {

namespace {

class SpmWordEncoder : public WordEncoder {
 public:
  SpmWordEncoder(const Vocabulary& vocabulary, SpmUnknown unknown, bool characters)
      : vocabulary_(vocabulary), unknown_(unknown), characters_(characters) {
    if (characters) user_defined_ = user_defined_index(vocabulary);
  }

  void encode_word(std::string_view word, EncoderScratch& /*scratch*/,
                   std::vector<std::int32_t>& out) const override {
    bool after_unknown = false;
    while (!word.empty()) {
      const std::size_t length = characters_ ? unit_length(word) : word_length(word);
      const std::string_view text = word.substr(0, length);
      const auto id = find(text);
      if (id) {
        out.push_back(*id);
      } else {
        unknown_.append(text, after_unknown, out);
      }
      after_unknown = !id;
      word.remove_prefix(length);
    }
  }

  std::int64_t heap_bytes() const override { return user_defined_.heap_bytes(); }

 private:
  std::size_t unit_length(std::string_view text) const {
    const auto fixed = user_defined_.longest(text);
    return fixed ? fixed->length : spm_character(text);
  }

  static std::size_t word_length(std::string_view text) {
    const std::size_t end = text.find(kSpmSpace, text.starts_with(kSpmSpace) ? kSpmSpace.size() : 1);
    return end == std::string_view::npos ? text.size() : end;
  }

  std::optional<std::int32_t> find(std::string_view text) const {
    for (const bool raw : {true, false}) {
      const auto id = vocabulary_.find(text, raw);
      if (id && vocabulary_.type(*id) != TokenType::Unknown) return id;
    }
    return std::nullopt;
  }

  const Vocabulary& vocabulary_;
  SpmUnknown unknown_;
  PrefixIndex user_defined_;
  bool characters_;
};

Result<std::unique_ptr<const WordEncoder>> make_spm_words(const TokenizerSpec& spec,
                                                          const Vocabulary& vocabulary, bool characters) {
  const SpmUnknown unknown = HONE_TRY(SpmUnknown::build(spec, vocabulary));
  return std::unique_ptr<const WordEncoder>(
      std::make_unique<SpmWordEncoder>(vocabulary, unknown, characters));
}

}  // namespace

Result<std::unique_ptr<const WordEncoder>> make_spm_char_encoder(const TokenizerSpec& spec,
                                                                 const Vocabulary& vocabulary) {
  return make_spm_words(spec, vocabulary, true);
}

Result<std::unique_ptr<const WordEncoder>> make_spm_word_encoder(const TokenizerSpec& spec,
                                                                 const Vocabulary& vocabulary) {
  return make_spm_words(spec, vocabulary, false);
}

}  // namespace hone
