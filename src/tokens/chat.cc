#include "tokens/chat.h"

#include <algorithm>
#include <ctime>
#include <fmt/format.h>

namespace hone {

namespace {

Error wrong_shape(std::string_view what, std::string_view expected, const nlohmann::ordered_json& actual) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               std::string(what),
               fmt::format("{} must be {}", what, expected),
               std::string(expected),
               actual.type_name(),
               {}};
}

// Before anything copies the data, which nlohmann does by recursion.
bool is_deeper(const nlohmann::ordered_json& json, std::int32_t depth) {
  if (!json.is_structured()) return false;
  if (depth == 0) return true;
  return std::any_of(json.begin(), json.end(), [&](const auto& item) { return is_deeper(item, depth - 1); });
}

Status check_messages(const nlohmann::ordered_json& messages) {
  if (!messages.is_array()) return wrong_shape("messages", "an array of objects", messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!messages[i].is_object())
      return wrong_shape(fmt::format("messages[{}]", i), "an object", messages[i]);
  }
  return {};
}

}  // namespace

std::int64_t local_seconds() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return static_cast<std::int64_t>(now) + local.tm_gmtoff;
}

SpecialTokenTexts special_token_texts(const Tokenizer& tokenizer) {
  return {std::string(tokenizer.bos_text()), std::string(tokenizer.eos_text()),
          std::string(tokenizer.unknown_text()), std::string(tokenizer.padding_text())};
}

Result<std::string> render_chat(std::string_view chat_template, const nlohmann::ordered_json& messages,
                                const nlohmann::ordered_json& tools, const SpecialTokenTexts& special,
                                const ChatOptions& options) {
  HONE_TRY(check_messages(messages));
  if (!tools.is_null() && !tools.is_array()) return wrong_shape("tools", "an array or null", tools);
  if (!options.variables.is_object()) return wrong_shape("variables", "an object", options.variables);
  for (const auto* data : {&messages, &tools, &options.variables}) {
    if (is_deeper(*data, options.fuel.depth)) {
      return Error{ErrorCode::BadInput,
                   Fault::User,
                   "messages",
                   "the data is nested too deeply",
                   fmt::format("at most {} levels", options.fuel.depth),
                   {},
                   "give flatter data"};
    }
  }
  nlohmann::ordered_json context = nlohmann::ordered_json::object();
  context["messages"] = messages;
  context["tools"] = tools;
  context["documents"] = nullptr;
  context["add_generation_prompt"] = options.add_generation_prompt;
  const auto add_text = [&](const char* name, const std::string& text) {
    if (!text.empty()) context[name] = text;
  };
  add_text("bos_token", special.bos);
  add_text("eos_token", special.eos);
  add_text("unk_token", special.unknown);
  add_text("pad_token", special.padding);
  for (const auto& [name, value] : options.variables.items()) context[name] = value;
  return render_template(chat_template, context, options.fuel);
}

}  // namespace hone
