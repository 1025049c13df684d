// A message list -> the text that a model was trained to continue.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokens/jinja.h"
#include "tokens/tokenizer.h"

namespace hone {

// Texts that the template sees as bos_token and so on. An empty one is left undefined, as transformers does.
struct SpecialTokenTexts {
  std::string bos;
  std::string eos;
  std::string unknown;
  std::string padding;
};

SpecialTokenTexts special_token_texts(const Tokenizer& tokenizer);

// Seconds since 1970 as the clock on this machine's wall shows them: what strftime_now of a template sees.
std::int64_t local_seconds();

struct ChatOptions {
  bool add_generation_prompt = true;
  // More variables for the template, a JSON object ({"enable_thinking": false}); they win over the names
  // above.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  Fuel fuel{};
};

// `messages`: a JSON array of objects, given to the template exactly as it is (nulls stay). `tools`: a JSON
// array, or null for none. Errors: BadInput for a wrong shape, and those of render_template.
Result<std::string> render_chat(std::string_view chat_template, const nlohmann::ordered_json& messages,
                                const nlohmann::ordered_json& tools, const SpecialTokenTexts& special,
                                const ChatOptions& options = {});

}  // namespace hone
