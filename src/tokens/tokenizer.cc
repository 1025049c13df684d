#include "tokens/tokenizer.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "tokens/tokenizer_error.h"
#include "tokens/tokenizer_gguf.h"
#include "tokens/utf8.h"

namespace hone {

// Working memory of one encode call.
struct Tokenizer::Scratch {
  std::vector<AddedMatch> raw_matches;
  std::vector<AddedMatch> normalised_matches;
  NormaliserScratch normaliser;
  std::string normalised;
  PreTokenizerScratch pre_tokenizer;
  std::vector<TextSpan> words;
  EncoderScratch encoder;
};

namespace {

Status check_ids(const TokenizerSpec& spec, std::int32_t count) {
  const auto check = [&](std::int32_t id, std::string_view what) -> Status {
    if (id >= 0 && id < count) return {};
    return bad_tokenizer(std::string(what), "a token id is inside the vocabulary",
                         fmt::format("0 to {}", count - 1), fmt::format("{}", id));
  };
  for (const auto& [id, name] :
       {std::pair(spec.special.bos, "bos token"), std::pair(spec.special.eos, "eos token"),
        std::pair(spec.special.unknown, "unknown token"), std::pair(spec.special.padding, "padding token"),
        std::pair(spec.special.end_of_turn, "end of turn token"),
        std::pair(spec.model.unknown, "the model's unknown token")}) {
    if (id) HONE_TRY(check(*id, name));
  }
  for (const std::int32_t id : spec.before) HONE_TRY(check(id, "post-processor"));
  for (const std::int32_t id : spec.after) HONE_TRY(check(id, "post-processor"));
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::build(const TokenizerSpec& spec) {
  Tokenizer out;
  out.pre_tokenizer_ = HONE_TRY(PreTokenizer::build(spec));
  out.vocabulary_ =
      std::make_unique<const Vocabulary>(HONE_TRY(Vocabulary::build(spec, out.pre_tokenizer_.byte_level())));
  HONE_TRY(check_ids(spec, out.vocab_size()));
  out.encoder_ = HONE_TRY(make_word_encoder(spec, *out.vocabulary_));
  out.normaliser_ = HONE_TRY(Normaliser::build(spec));
  out.raw_added_ = HONE_TRY(AddedTokens::build(spec, false, out.normaliser_));
  out.normalised_added_ = HONE_TRY(AddedTokens::build(spec, true, out.normaliser_));
  out.decoder_ = HONE_TRY(TextDecoder::build(spec));
  out.before_ = spec.before;
  out.after_ = spec.after;
  out.special_ = spec.special;
  out.chat_template_.assign(spec.chat_template.begin(), spec.chat_template.end());
  out.pre_tokenizer_name_.assign(spec.pre_tokenizer_name.begin(), spec.pre_tokenizer_name.end());
  return out;
}

Result<Tokenizer> Tokenizer::from_metadata(const Metadata& metadata) {
  const TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_gguf(metadata));
  return build(spec);
}

std::optional<TokenType> Tokenizer::token_type(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return std::nullopt;
  return vocabulary_->type(id);
}

std::optional<std::int32_t> Tokenizer::special_token_id(std::string_view text) const {
  if (text.empty()) return std::nullopt;
  for (const bool raw : {true, false}) {
    const auto id = vocabulary_->find(text, raw);
    if (id && vocabulary_->type(*id) != TokenType::Normal) return id;
  }
  return std::nullopt;
}

Status Tokenizer::encode_words(std::string_view text, bool at_start, Scratch& s,
                               std::vector<std::int32_t>& out) const {
  const std::string_view words = HONE_TRY(pre_tokenizer_.split(text, at_start, s.pre_tokenizer, s.words));
  for (const TextSpan word : s.words) {
    encoder_->encode_word(words.substr(word.begin, word.end - word.begin), s.encoder, out);
  }
  return {};
}

Status Tokenizer::encode_normalised(std::string_view text, bool at_start, const EncodeOptions& options,
                                    Scratch& s, std::vector<std::int32_t>& out) const {
  if (normalised_added_.empty()) return encode_words(text, at_start, s, out);
  normalised_added_.find_all(text, options.parse_special, s.normalised_matches);
  std::size_t begin = 0;
  for (const AddedMatch& match : s.normalised_matches) {
    HONE_TRY(encode_words(text.substr(begin, match.span.begin - begin), at_start && begin == 0, s, out));
    out.push_back(match.id);
    begin = match.span.end;
  }
  return encode_words(text.substr(begin), at_start && begin == 0, s, out);
}

Status Tokenizer::encode_segment(std::string_view text, bool at_start, const EncodeOptions& options,
                                 Scratch& s, std::vector<std::int32_t>& out) const {
  while (!text.empty()) {
    const std::size_t valid = normaliser_.takes_any_bytes() ? text.size() : utf8_valid_prefix(text);
    if (normaliser_.empty()) {
      HONE_TRY(encode_normalised(text.substr(0, valid), at_start, options, s, out));
    } else if (valid > 0) {
      s.normalised.assign(text.substr(0, valid));
      HONE_TRY(normaliser_.apply(s.normalised, s.normaliser));
      HONE_TRY(encode_normalised(s.normalised, at_start, options, s, out));
    }
    text.remove_prefix(valid);
    if (text.empty()) break;
    encoder_->encode_word(text.substr(0, 1), s.encoder, out);
    text.remove_prefix(1);
    at_start = false;
  }
  return {};
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  constexpr std::size_t kMaxText = std::numeric_limits<std::int32_t>::max();
  if (text.size() > kMaxText) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 "text",
                 "a text has at most 2^31 - 1 bytes",
                 fmt::format("at most {} bytes", kMaxText),
                 fmt::format("{} bytes", text.size()),
                 "split the text"};
  }
  Scratch scratch;
  std::vector<std::int32_t> out;
  if (options.add_special) out = before_;
  raw_added_.find_all(text, options.parse_special, scratch.raw_matches);
  std::size_t begin = 0;
  for (const AddedMatch& match : scratch.raw_matches) {
    HONE_TRY(encode_segment(text.substr(begin, match.span.begin - begin), begin == 0, options, scratch, out));
    out.push_back(match.id);
    begin = match.span.end;
  }
  HONE_TRY(encode_segment(text.substr(begin), begin == 0, options, scratch, out));
  if (options.add_special) out.insert(out.end(), after_.begin(), after_.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, DecodeOptions options) const {
  return decoder_.decode(*vocabulary_, ids, options);
}

bool Tokenizer::is_end_of_generation(std::int32_t id) const {
  if (id == special_.eos || id == special_.end_of_turn) return true;
  if (token_type(id) != TokenType::Control) return false;
  constexpr std::array<std::string_view, 7> kEnds{"<|im_end|>",    "<|endoftext|>", "<|eot_id|>", "<|end|>",
                                                  "<end_of_turn>", "</s>",          "<|eom_id|>"};
  return std::find(kEnds.begin(), kEnds.end(), token_bytes(id)) != kEnds.end();
}

std::int64_t Tokenizer::heap_bytes() const {
  const auto bytes = [](const auto& v) { return static_cast<std::int64_t>(v.capacity() * sizeof(v[0])); };
  return static_cast<std::int64_t>(sizeof(Vocabulary)) + vocabulary_->heap_bytes() + encoder_->heap_bytes() +
         normaliser_.heap_bytes() + pre_tokenizer_.heap_bytes() + raw_added_.heap_bytes() +
         normalised_added_.heap_bytes() + decoder_.heap_bytes() + bytes(before_) + bytes(after_) +
         bytes(chat_template_) + bytes(pre_tokenizer_name_);
}

}  // namespace hone
