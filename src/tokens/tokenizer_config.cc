#include "tokens/tokenizer_config.h"

#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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

}  // namespace hone
