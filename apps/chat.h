// A conversation on a terminal: a line in, the answer out, with what was said before.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/generate.h"
#include "engine/session.h"

namespace hone {

struct ChatSettings {
  std::string model;   // its path, for messages
  std::string system;  // "": no system prompt
  bool raw = false;    // each line is continued as it stands, alone
  // Answers `ids`, of which the session's state holds the first `past`; streams the text.
  std::function<Result<Generation>(std::span<const std::int32_t> ids, std::int64_t past)> answer;
  // Reports on an answer.
  std::function<void(const Generation&)> report;
};

// The messages through the tokenizer's chat template, ready for the answer. Errors (BadModel): no template.
Result<std::string> render_prompt(const std::string& model, const Tokenizer& tokenizer,
                                  const nlohmann::ordered_json& messages);

// Until Ctrl-D, /quit, /exit, /bye, or Ctrl-C at the prompt (which ends the process). What goes wrong with
// one message is reported and the conversation goes on without it.
Status chat(const ChatSettings& settings, Session& session);

}  // namespace hone
