#include "tokens/tokenizer_gguf.h"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "tokens/gguf_pre_tokenizer.h"
#include "tokens/tokenizer_error.h"
#include "tokens/tokenizer_gguf_spm.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTypesKey = "tokenizer.ggml.token_type";
constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";

// The strings of an array of GGUF lie behind lengths of eight bytes each.
std::size_t text_bytes(const MetadataArray& strings) {
  return strings.bytes().size() - 8 * strings.size();
}

Status check_count(std::string_view key, std::uint64_t count, std::uint64_t least) {
  if (count >= least && count <= kMaxTokens) return {};
  return bad_tokenizer(std::string(key), fmt::format("there are from {} to 2^30 - 1 entries", least), {},
                       fmt::format("{}", count));
}

Status read_tokens(const Metadata& metadata, TokenizerSpec& spec) {
  const MetadataArray tokens = HONE_TRY(metadata.required_array(kTokensKey, ArrayKind::Strings));
  HONE_TRY(check_count(kTokensKey, tokens.size(), 1));
  spec.model.tokens.reserve(tokens.size(), text_bytes(tokens));
  tokens.for_each_string([&](std::uint64_t, std::string_view text) { spec.model.tokens.push_back(text); });
  return {};
}

Status read_types(const Metadata& metadata, TokenizerSpec& spec) {
  const auto types = HONE_TRY(metadata.optional_array(kTypesKey, ArrayKind::Integers));
  if (!types) return {};
  const StringTable& tokens = spec.model.tokens;
  if (types->size() != tokens.size()) {
    return bad_tokenizer(std::string(kTypesKey), "there is one token type for each token",
                         fmt::format("{}", tokens.size()), fmt::format("{}", types->size()));
  }
  spec.model.types.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto value = types->integer_at(id);
    if (!value || *value < 1 || *value > 6) {
      return bad_tokenizer(table_element(kTypesKey, id), "a token type is a number from 1 to 6", "1 to 6",
                           value ? fmt::format("{}", *value) : "no integer");
    }
    const auto type = static_cast<TokenType>(*value);
    spec.model.types.push_back(type);
    const bool looked_for =
        type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
    if (!looked_for || tokens[id].empty()) continue;
    AddedToken added;
    added.id = static_cast<std::int32_t>(id);
    added.content = tokens[id];
    added.special = type != TokenType::UserDefined;
    spec.added_tokens.push_back(std::move(added));
  }
  return {};
}

Status read_merges(const Metadata& metadata, TokenizerSpec& spec) {
  const MetadataArray merges = HONE_TRY(metadata.required_array(kMergesKey, ArrayKind::Strings));
  HONE_TRY(check_count(kMergesKey, merges.size(), 0));
  spec.model.merges.reserve(2 * merges.size(), text_bytes(merges));
  std::optional<Error> failed;
  merges.for_each_string([&](std::uint64_t rank, std::string_view text) {
    if (failed) return;
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
        text.find(' ', space + 1) != std::string_view::npos) {
      failed =
          bad_tokenizer(table_element(kMergesKey, rank), "a merge is two tokens with one space between them",
                        "'left right'", fmt::format("'{}'", to_valid_utf8(text.substr(0, 80))));
      return;
    }
    spec.model.merges.push_back(text.substr(0, space));
    spec.model.merges.push_back(text.substr(space + 1));
  });
  if (failed) return *failed;
  return {};
}

Result<std::optional<std::int32_t>> role_id(const Metadata& metadata, std::string_view name,
                                            std::size_t count) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  const auto id = HONE_TRY(metadata.optional_integer(key));
  if (!id) return std::optional<std::int32_t>{};
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= count) {
    return bad_tokenizer(key, "a token id is inside the vocabulary", fmt::format("0 to {}", count - 1),
                         fmt::format("{}", *id));
  }
  return std::optional<std::int32_t>(static_cast<std::int32_t>(*id));
}

// add_bos_token and add_eos_token.
Status add_around(const Metadata& metadata, std::string_view name, const std::optional<std::int32_t>& id,
                  std::vector<std::int32_t>& out) {
  const std::string key = fmt::format("tokenizer.ggml.add_{}_token", name);
  const bool wanted = HONE_TRY(metadata.optional_bool(key)).value_or(false);
  if (!wanted) return {};
  if (!id) {
    return bad_tokenizer(key, "a token that is to be added has an id",
                         fmt::format("tokenizer.ggml.{}_token_id", name), "no such key");
  }
  out.push_back(*id);
  return {};
}

Status read_roles(const Metadata& metadata, TokenizerSpec& spec) {
  const std::size_t count = spec.model.tokens.size();
  spec.special.bos = HONE_TRY(role_id(metadata, "bos", count));
  spec.special.eos = HONE_TRY(role_id(metadata, "eos", count));
  spec.special.unknown = HONE_TRY(role_id(metadata, "unknown", count));
  spec.special.padding = HONE_TRY(role_id(metadata, "padding", count));
  spec.special.end_of_turn = HONE_TRY(role_id(metadata, "eot", count));
  HONE_TRY(add_around(metadata, "bos", spec.special.bos, spec.before));
  return add_around(metadata, "eos", spec.special.eos, spec.after);
}

}  // namespace

Result<TokenizerSpec> tokenizer_spec_from_gguf(const Metadata& metadata) {
  const std::string_view model = HONE_TRY(metadata.required_string("tokenizer.ggml.model"));
  if (is_spm_gguf(model)) return spm_spec_from_gguf(metadata, model);
  if (model != "gpt2") {
    return unsupported_tokenizer("tokenizer.ggml.model", "tokenizer model", model, "gpt2, llama, t5");
  }
  TokenizerSpec spec;
  spec.places.tokens = kTokensKey;
  spec.places.types = kTypesKey;
  spec.places.merges = kMergesKey;
  spec.places.pre_tokenizer = "tokenizer.ggml.pre";
  spec.places.normalizer = "tokenizer.ggml.pre";
  spec.places.decoder = "tokenizer.ggml.pre";
  spec.places.added_tokens = kTypesKey;
  const auto pre = HONE_TRY(metadata.optional_string("tokenizer.ggml.pre"));
  HONE_TRY(fill_pre_tokenizer(pre.value_or("default"), spec));
  HONE_TRY(read_tokens(metadata, spec));
  HONE_TRY(read_types(metadata, spec));
  HONE_TRY(read_merges(metadata, spec));
  HONE_TRY(read_roles(metadata, spec));
  spec.decoder.emplace_back();
  const auto chat_template = HONE_TRY(metadata.optional_string("tokenizer.chat_template"));
  spec.chat_template = chat_template.value_or(std::string_view{});
  return spec;
}

}  // namespace hone
