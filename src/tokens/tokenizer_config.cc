#include "tokens/tokenizer_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "file/json_text.h"
#include "file/mapped_file.h"
#include "tokens/tokenizer_error.h"
#include "tokens/utf8.h"

namespace hone {

namespace {

using Json = nlohmann::json;

constexpr JsonLimits kConfigLimits{.bytes = 16U << 20U, .depth = 64};
constexpr std::uint64_t kMaxTemplateBytes = 1U << 20U;

std::optional<std::string> existing(const std::string& folder, std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return path.string();
}

// "</s>" or {"content": "</s>", ..}.
std::optional<std::string> role_text(const Json& config, const char* name) {
  const auto at = config.find(name);
  if (at == config.end()) return std::nullopt;
  if (at->is_string()) return at->get<std::string>();
  const auto content = at->is_object() ? at->find("content") : at->end();
  if (!at->is_object() || content == at->end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

std::optional<std::int32_t> id_of(const TokenizerSpec& spec, std::string_view text) {
  for (const AddedToken& token : spec.added_tokens) {
    if (token.content == text) return token.id;
  }
  const StringTable& tokens = spec.model.tokens;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id] == text) return static_cast<std::int32_t>(id);
  }
  return std::nullopt;
}

void fill_roles(const Json& config, TokenizerSpec& spec) {
  SpecialTokens& special = spec.special;
  const std::array<std::pair<const char*, std::optional<std::int32_t>*>, 4> kRoles{{
      {"bos_token", &special.bos},
      {"eos_token", &special.eos},
      {"unk_token", &special.unknown},
      {"pad_token", &special.padding},
  }};
  for (const auto& [name, id] : kRoles) {
    if (id->has_value()) continue;
    const auto text = role_text(config, name);
    if (text && !text->empty()) *id = id_of(spec, *text);
  }
}

// A text, or a list of {"name": .., "template": ..}.
Status fill_template(const Json& config, const std::string& path, TokenizerSpec& spec) {
  const auto at = config.find("chat_template");
  if (at == config.end() || at->is_null()) return {};
  if (at->is_string()) {
    spec.chat_template = at->get<std::string>();
    return {};
  }
  if (at->is_array()) {
    for (const Json& each : *at) {
      if (!each.is_object() || each.value("name", Json()) != "default") continue;
      if (each.contains("template") && each["template"].is_string()) {
        spec.chat_template = each["template"].get<std::string>();
      }
    }
    return {};
  }
  return bad_tokenizer(fmt::format("{}, chat_template", path),
                       "a chat template is a text or a list of named ones", "a string or an array",
                       at->type_name());
}

Status read_template_file(const std::string& path, TokenizerSpec& spec) {
  const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(path));
  const std::string_view text(reinterpret_cast<const char*>(file->data().data()), file->size());
  if (text.size() > kMaxTemplateBytes || utf8_valid_prefix(text) != text.size()) {
    return bad_tokenizer(path, "a chat template is UTF-8 text of at most 1 MiB", {},
                         fmt::format("{} bytes", text.size()));
  }
  spec.chat_template = text;
  return {};
}

// What a class of the transformers library puts around a text unless it is told otherwise.
struct AroundRow {
  std::string_view name;  // without "Fast" at its end
  bool bos;
  bool eos;
};
constexpr std::array kAroundRows{
    AroundRow{"LlamaTokenizer", true, false},
    AroundRow{"CodeLlamaTokenizer", true, false},
    AroundRow{"GemmaTokenizer", true, false},
    AroundRow{"T5Tokenizer", false, true},
};

bool flag_of(const Json& json, const char* name, bool otherwise) {
  const auto at = json.find(name);
  return at != json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
}

Status append_role(const std::string& path, std::string_view key, const std::optional<std::int32_t>& id,
                   std::vector<std::int32_t>& out) {
  if (!id) {
    return bad_tokenizer(fmt::format("{}, {}", path, key), "a token that is to be added is in the vocabulary",
                         {}, "no such token");
  }
  out.push_back(*id);
  return {};
}

std::optional<std::int32_t> number_of(std::string_view digits) {
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size() && id >= 0;
  return whole ? std::optional(id) : std::nullopt;
}

// {"32000": {"content": "<turn>", "special": true, ..}, ..}. A token that the model has keeps its place
// there.
Status fill_added(const Json& config, const std::string& path, TokenizerSpec& spec) {
  const auto table = config.find("added_tokens_decoder");
  if (table == config.end() || !table->is_object()) return {};
  std::set<std::int32_t> known;
  for (const AddedToken& token : spec.added_tokens) known.insert(token.id);
  for (std::size_t id = 0; id < spec.model.types.size(); ++id) {
    if (spec.model.types[id] == TokenType::UserDefined) known.insert(static_cast<std::int32_t>(id));
  }
  spec.added_tokens.reserve(spec.added_tokens.size() + table->size());
  for (const auto& [key, entry] : table->items()) {
    const auto id = number_of(key);
    const auto content = entry.is_object() ? role_text(Json{{"entry", entry}}, "entry") : std::nullopt;
    if (!id || !content || content->empty()) {
      return bad_tokenizer(fmt::format("{}, added_tokens_decoder", path),
                           "an added token has a number and a content", {}, to_valid_utf8(key.substr(0, 80)));
    }
    if (!known.insert(*id).second) continue;
    AddedToken token;
    token.id = *id;
    token.content = *content;
    token.single_word = flag_of(entry, "single_word", false);
    token.lstrip = flag_of(entry, "lstrip", false);
    token.rstrip = flag_of(entry, "rstrip", false);
    token.special = flag_of(entry, "special", false);
    spec.added_tokens.push_back(std::move(token));
  }
  return {};
}

}  // namespace

Status fill_from_config(const std::string& folder, TokenizerSpec& spec) {
  if (const auto path = existing(folder, "tokenizer_config.json")) {
    const Json config = HONE_TRY(read_json_object(*path, kConfigLimits));
    fill_roles(config, spec);
    HONE_TRY(fill_template(config, *path, spec));
  }
  if (const auto path = existing(folder, "special_tokens_map.json")) {
    fill_roles(HONE_TRY(read_json_object(*path, kConfigLimits)), spec);
  }
  if (const auto path = existing(folder, "chat_template.jinja")) HONE_TRY(read_template_file(*path, spec));
  return {};
}

Status fill_around_from_config(const std::string& folder, TokenizerSpec& spec) {
  const auto path = existing(folder, "tokenizer_config.json");
  if (!path) return {};
  const Json config = HONE_TRY(read_json_object(*path, kConfigLimits));
  HONE_TRY(fill_added(config, *path, spec));
  fill_roles(config, spec);
  std::string_view name;
  const auto at = config.find("tokenizer_class");
  if (at != config.end() && at->is_string()) name = at->get_ref<const std::string&>();
  if (name.ends_with("Fast")) name.remove_suffix(4);
  const auto* const row = std::ranges::find(kAroundRows, name, &AroundRow::name);
  const bool known = row != kAroundRows.end();
  if (flag_of(config, "add_bos_token", known && row->bos)) {
    HONE_TRY(append_role(*path, "add_bos_token", spec.special.bos, spec.before));
  }
  if (flag_of(config, "add_eos_token", known && row->eos)) {
    HONE_TRY(append_role(*path, "add_eos_token", spec.special.eos, spec.after));
  }
  return {};
}

}  // namespace hone
