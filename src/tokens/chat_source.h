// Where a Hugging Face folder keeps its chat template: chat_template.jinja, else tokenizer_config.json's key
// chat_template; and the special tokens that a template sees. No vocabulary is needed for that.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokens/chat.h"

namespace hone {

struct ChatSource {
  // By name; one without a name is called "default". Empty: the folder has none.
  std::vector<std::pair<std::string, std::string>> templates;
  SpecialTokenTexts special;
};

// Errors (BadModel): a file that is too large, no JSON, or of another shape; the folder without any of the
// files.
Result<ChatSource> read_chat_source(const std::string& folder);

// As transformers chooses: with tools the template "tool_use" if there is one, else "default"; a single one
// whatever its name. nullptr if there is none.
const std::string* choose_template(const ChatSource& source, bool with_tools);

}  // namespace hone
