#include "tokens/chat_source.h"

#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "file/mapped_file.h"
#include "tokens/exact_json.h"

namespace hone {

namespace {

using ConfigJson = nlohmann::ordered_json;

constexpr std::uint64_t kMostConfigBytes = std::uint64_t{64} << 20;

Error bad_shape(const std::string& where, std::string_view expected, const ConfigJson& actual) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               where,
               fmt::format("a chat template is {}", expected),
               std::string(expected),
               actual.type_name(),
               "correct the file"};
}

// nullopt if there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<std::string>();
  const auto file = HONE_TRY(MappedFile::open(path));
  if (file->size() > kMostConfigBytes) {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 path,
                 "the file is too large for what it should hold",
                 fmt::format("at most {} bytes", kMostConfigBytes),
                 fmt::format("{} bytes", file->size()),
                 {}};
  }
  const auto bytes = file->data();
  return std::optional<std::string>(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// "text", or the object that an added token is written as.
std::string token_text(const ConfigJson& config, const char* name) {
  const auto at = config.find(name);
  if (at == config.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  if (!at->is_object()) return {};
  const auto content = at->find("content");
  return content != at->end() && content->is_string() ? content->get<std::string>() : std::string();
}

Status read_templates(const std::string& path, const ConfigJson& value, ChatSource& out) {
  const std::string where = fmt::format("{}, chat_template", path);
  if (value.is_null()) return {};
  if (value.is_string()) {
    out.templates.emplace_back("default", value.get<std::string>());
    return {};
  }
  if (!value.is_array()) return bad_shape(where, "a string, or an array of named ones", value);
  for (const ConfigJson& each : value) {
    const bool named = each.is_object() && each.contains("name") && each["name"].is_string() &&
                       each.contains("template") && each["template"].is_string();
    if (!named) return bad_shape(where, "an object with the strings name and template", each);
    out.templates.emplace_back(each["name"].get<std::string>(), each["template"].get<std::string>());
  }
  return {};
}

void fill_special(const ConfigJson& config, SpecialTokenTexts& out) {
  const auto fill = [&](std::string& text, const char* name) {
    if (text.empty()) text = token_text(config, name);
  };
  fill(out.bos, "bos_token");
  fill(out.eos, "eos_token");
  fill(out.unknown, "unk_token");
  fill(out.padding, "pad_token");
}

Result<ConfigJson> parse_object(const std::string& path, const std::string& text) {
  Result<ConfigJson> config = parse_exact_json(text, path);
  if (!config.ok()) {
    Error error = config.error();
    error.code = ErrorCode::BadModel;
    error.fault = Fault::File;
    return error;
  }
  if (!config->is_object()) return bad_shape(path, "in an object", *config);
  return config;
}

}  // namespace

Result<ChatSource> read_chat_source(const std::string& folder) {
  ChatSource out;
  bool any = false;
  if (const auto text = HONE_TRY(read_file(folder + "/chat_template.jinja"))) {
    out.templates.emplace_back("default", *text);
    any = true;
  }
  const std::string config_path = folder + "/tokenizer_config.json";
  if (const auto text = HONE_TRY(read_file(config_path))) {
    const ConfigJson config = HONE_TRY(parse_object(config_path, *text));
    const auto value = config.find("chat_template");
    if (out.templates.empty() && value != config.end()) HONE_TRY(read_templates(config_path, *value, out));
    fill_special(config, out.special);
    any = true;
  }
  const std::string map_path = folder + "/special_tokens_map.json";
  if (const auto text = HONE_TRY(read_file(map_path))) {
    fill_special(HONE_TRY(parse_object(map_path, *text)), out.special);
    any = true;
  }
  if (any) return out;
  return Error{ErrorCode::BadModel,
               Fault::File,
               folder,
               "the folder has no chat template",
               "chat_template.jinja or tokenizer_config.json",
               "neither",
               "give a folder with the tokenizer's files"};
}

const std::string* choose_template(const ChatSource& source, bool with_tools) {
  const auto find = [&](std::string_view name) -> const std::string* {
    for (const auto& [each, text] : source.templates) {
      if (each == name) return &text;
    }
    return nullptr;
  };
  if (source.templates.size() == 1) return &source.templates[0].second;
  const std::string* with = with_tools ? find("tool_use") : nullptr;
  return with != nullptr ? with : find("default");
}

}  // namespace hone
