#include "apps/prompt_flags.h"

#include "apps/chat.h"
#include "tokens/load_tokenizer.h"

namespace hone {

void PromptFlags::add_to(const Command& verb) {
  text_option_ = verb.option("-p,--prompt", text_, "the prompt").may_be_empty();
  const Flag file = verb.option("-f,--file", file_, "the prompt from a file");
  const Flag ids = verb.option("--ids", ids_, "the prompt as token ids: 1,2,3");
  ids_option_ = ids;
  text_option_->excludes(file).excludes(ids);
  file.excludes(ids);
  const Flag raw = verb.flag("--raw", raw_, "continue the text as it stands, without the chat template");
  verb.option("--system", system_, "system prompt").may_be_empty().excludes(raw).excludes(ids);
}

bool PromptFlags::given() const {
  return text_option_->given() || !file_.empty() || ids_option_->given();
}

Result<Prompt> PromptFlags::read() const {
  Prompt prompt;
  if (ids_option_->given()) {
    prompt.ids = HONE_TRY(parse_ids("--ids", ids_));
    return prompt;
  }
  prompt.text = !file_.empty()          ? HONE_TRY(read_text_file(file_))
                : text_option_->given() ? text_
                                        : HONE_TRY(read_stdin());
  if (!prompt.text.empty()) return prompt;
  return Error{ErrorCode::BadInput,
               Fault::User,
               "prompt",
               "the prompt is empty",
               "some text",
               "none",
               "give a prompt with -p, -f or --ids"};
}

Json PromptFlags::first_messages() const {
  Json messages = Json::array();
  if (!system_.empty()) messages.push_back({{"role", "system"}, {"content", system_}});
  return messages;
}

Result<std::vector<std::int32_t>> PromptFlags::ids(const Prompt& prompt, const std::string& model,
                                                   const Tokenizer* tokenizer) const {
  if (!prompt.ids.empty()) return prompt.ids;
  if (tokenizer == nullptr) return no_tokenizer(model);
  if (raw_) return tokenizer->encode(prompt.text);
  Json messages = first_messages();
  messages.push_back({{"role", "user"}, {"content", prompt.text}});
  // The template writes the begin token itself.
  const std::string rendered = HONE_TRY(render_prompt(model, *tokenizer, messages));
  return tokenizer->encode(rendered, {.parse_special = true, .add_special = false});
}

}  // namespace hone
