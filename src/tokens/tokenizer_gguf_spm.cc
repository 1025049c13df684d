#include "tokens/tokenizer_gguf_spm.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "tokens/spm_normaliser.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

constexpr std::string_view kSpmTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kSpmTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kSpmScoresKey = "tokenizer.ggml.scores";
constexpr std::string_view kSpmMapKey = "tokenizer.ggml.precompiled_charsmap";

// What llama.cpp takes where the file is silent.
struct SpmGgufRow {
  std::string_view name;
  ModelSpec::Kind kind;
  std::optional<std::int32_t> bos;
  std::int32_t eos;
  std::int32_t unknown;
  std::optional<std::int32_t> padding;
  bool add_bos;
  bool add_eos;
};
constexpr std::array kSpmGgufRows{
    SpmGgufRow{"llama", ModelSpec::Kind::SentencePieceBpe, 1, 2, 0, std::nullopt, true, false},
    SpmGgufRow{"t5", ModelSpec::Kind::Unigram, std::nullopt, 1, 2, 0, false, true},
};

std::string with_spm_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ' ') {
      for (const char part : kSpmSpace) out.push_back(part);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

class SpmGgufReader {
 public:
  SpmGgufReader(const Metadata& metadata, const SpmGgufRow& row) : metadata_(metadata), row_(row) {}

  Result<TokenizerSpec> read() {
    spec_.places = {std::string(kSpmTokensKey), std::string(kSpmTypesKey), std::string(kSpmScoresKey),
                    "tokenizer.ggml.pre",       std::string(kSpmMapKey),   "tokenizer.ggml.model",
                    std::string(kSpmTypesKey)};
    spec_.pre_tokenizer_name = row_.name;
    spec_.model.kind = row_.kind;
    spec_.model.fuse_unknown = true;
    HONE_TRY(read_types());
    HONE_TRY(read_tokens());
    HONE_TRY(read_scores());
    HONE_TRY(read_normaliser());
    HONE_TRY(read_special());
    const auto chat_template = HONE_TRY(metadata_.optional_string("tokenizer.chat_template"));
    spec_.chat_template = chat_template.value_or(std::string_view{});
    return std::move(spec_);
  }

 private:
  Status read_types() {
    const MetadataArray tokens = HONE_TRY(metadata_.required_array(kSpmTokensKey, ArrayKind::Strings));
    const auto types = HONE_TRY(metadata_.optional_array(kSpmTypesKey, ArrayKind::Integers));
    if (tokens.size() == 0 || tokens.size() > kMaxTokens) {
      return bad_tokenizer(std::string(kSpmTokensKey), "there are from 1 to 2^30 - 1 entries", {},
                           fmt::format("{}", tokens.size()));
    }
    if (types && types->size() != tokens.size()) {
      return bad_tokenizer(std::string(kSpmTypesKey), "there is one token type for each token",
                           fmt::format("{}", tokens.size()), fmt::format("{}", types->size()));
    }
    spec_.model.types.assign(tokens.size(), TokenType::Normal);
    for (std::size_t id = 0; types && id < tokens.size(); ++id) {
      const auto value = types->integer_at(id);
      if (!value || *value < 1 || *value > 6) {
        return bad_tokenizer(table_element(kSpmTypesKey, id), "a token type is a number from 1 to 6",
                             "1 to 6", value ? fmt::format("{}", *value) : "no integer");
      }
      spec_.model.types[id] = static_cast<TokenType>(*value);
    }
    return {};
  }

  Status read_tokens() {
    const MetadataArray tokens = HONE_TRY(metadata_.required_array(kSpmTokensKey, ArrayKind::Strings));
    spec_.model.tokens.reserve(tokens.size(), tokens.bytes().size() - 8 * tokens.size());
    tokens.for_each_string([&](std::uint64_t id, std::string_view text) {
      const TokenType type = spec_.model.types[id];
      if (type == TokenType::UserDefined) {
        spec_.model.tokens.push_back(with_spm_spaces(text));
        fixed_.push_back(spec_.model.tokens[id]);
        return;
      }
      spec_.model.tokens.push_back(text);
      spec_.model.byte_fallback = spec_.model.byte_fallback || type == TokenType::Byte;
      const bool special = type == TokenType::Control || type == TokenType::Unknown;
      if (!special || text.empty()) return;
      AddedToken added;
      added.id = static_cast<std::int32_t>(id);
      added.content = text;
      added.special = true;
      spec_.added_tokens.push_back(std::move(added));
    });
    return {};
  }

  Status read_scores() {
    const MetadataArray scores = HONE_TRY(metadata_.required_array(kSpmScoresKey, ArrayKind::Reals));
    if (scores.size() != spec_.model.tokens.size()) {
      return bad_tokenizer(std::string(kSpmScoresKey), "there is one score for each token",
                           fmt::format("{}", spec_.model.tokens.size()), fmt::format("{}", scores.size()));
    }
    spec_.model.scores.reserve(scores.size());
    for (std::uint64_t id = 0; id < scores.size(); ++id) {
      spec_.model.scores.push_back(static_cast<float>(scores.real_at(id).value_or(0)));
    }
    return {};
  }

  Status read_normaliser() {
    NormaliserStep step;
    step.kind = NormaliserStep::Kind::SentencePiece;
    step.spm.add_dummy_prefix =
        HONE_TRY(metadata_.optional_bool("tokenizer.ggml.add_space_prefix")).value_or(true);
    step.spm.remove_extra_whitespaces =
        HONE_TRY(metadata_.optional_bool("tokenizer.ggml.remove_extra_whitespaces")).value_or(false);
    if (const auto map = HONE_TRY(metadata_.optional_array(kSpmMapKey, ArrayKind::Integers))) {
      if (map->bytes().size() != map->size()) {
        return bad_tokenizer(std::string(kSpmMapKey), "a character map is an array of bytes", "u8 or i8",
                             std::string(metadata_type_name(map->element_type())));
      }
      step.content.assign(reinterpret_cast<const char*>(map->bytes().data()), map->bytes().size());
    }
    DecoderStep decoder;
    decoder.kind = DecoderStep::Kind::SentencePiece;
    decoder.content = " \xE2\x81\x87 ";
    decoder.spm = step.spm;
    step.fixed = std::move(fixed_);
    spec_.normaliser.push_back(std::move(step));
    spec_.decoder.push_back(std::move(decoder));
    return {};
  }

  Status read_special() {
    SpecialTokens& special = spec_.special;
    special.bos = HONE_TRY(role("bos", row_.bos));
    special.eos = HONE_TRY(role("eos", row_.eos));
    special.unknown = HONE_TRY(role("unknown", row_.unknown));
    special.padding = HONE_TRY(role("padding", row_.padding));
    special.end_of_turn = HONE_TRY(role("eot", std::nullopt));
    spec_.model.unknown = special.unknown;
    HONE_TRY(add_around("bos", special.bos, row_.add_bos, spec_.before));
    return add_around("eos", special.eos, row_.add_eos, spec_.after);
  }

  // A default counts only where the vocabulary has that id.
  Result<std::optional<std::int32_t>> role(std::string_view name,
                                           std::optional<std::int32_t> otherwise) const {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
    const auto count = static_cast<std::int64_t>(spec_.model.tokens.size());
    const auto id = HONE_TRY(metadata_.optional_integer(key));
    if (!id) return otherwise && *otherwise < count ? otherwise : std::optional<std::int32_t>{};
    if (*id >= 0 && *id < count) return std::optional<std::int32_t>(static_cast<std::int32_t>(*id));
    return bad_tokenizer(key, "a token id is inside the vocabulary", fmt::format("0 to {}", count - 1),
                         fmt::format("{}", *id));
  }

  Status add_around(std::string_view name, std::optional<std::int32_t> id, bool otherwise,
                    std::vector<std::int32_t>& out) const {
    const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
    const auto wanted = HONE_TRY(metadata_.optional_bool(key));
    if (!wanted.value_or(otherwise && id.has_value())) return {};
    if (!id) {
      return bad_tokenizer(key, "a token that is to be added has an id",
                           fmt::format("tokenizer.ggml.{}_token_id", name), "no such key");
    }
    out.push_back(*id);
    return {};
  }

  const Metadata& metadata_;
  const SpmGgufRow& row_;
  TokenizerSpec spec_;
  StringTable fixed_;
};

}  // namespace

bool is_spm_gguf(std::string_view model) {
  return std::ranges::find(kSpmGgufRows, model, &SpmGgufRow::name) != kSpmGgufRows.end();
}

Result<TokenizerSpec> spm_spec_from_gguf(const Metadata& metadata, std::string_view model) {
  const auto* const row = std::ranges::find(kSpmGgufRows, model, &SpmGgufRow::name);
  if (row == kSpmGgufRows.end()) {
    return unsupported_tokenizer("tokenizer.ggml.model", "tokenizer model", model, "llama, t5");
  }
  return SpmGgufReader(metadata, *row).read();
}

}  // namespace hone
