// hone render and hone template: a chat template applied, and any template over any context.
#include <fmt/format.h>
#include <memory>

#include "apps/verb.h"
#include "file/open.h"
#include "tokens/chat.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

Result<Json> parse_json_file(const std::string& path) {
  const std::string text = HONE_TRY(read_text_file(path));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // What the parser says after its own name and number: "syntax error while parsing value - ..".
    const std::string_view what = error.what();
    return Error{ErrorCode::BadInput,    Fault::User,       fmt::format("{}, byte {}", path, error.byte),
                 "the file is not JSON", "a JSON document", std::string(what.substr(what.find("] ") + 2)),
                 "correct the file"};
  }
}

void print_text(const std::string& text, bool json) {
  if (json) {
    print_json({{"text", text}});
  } else {
    print_answer(text);
  }
}

struct RenderFlags : CommonFlags {
  std::string messages;
  std::vector<std::string> variables;  // name=json
  bool add_generation_prompt = false;
};

Status run_render(const RenderFlags& flags) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(flags.model));
  const Tokenizer tokenizer = HONE_TRY(require_tokenizer(checkpoint));
  if (tokenizer.chat_template().empty()) {
    return Error{ErrorCode::BadModel,       Fault::File, flags.model, "the file carries no chat template",
                 "tokenizer.chat_template", "none",      {}};
  }
  const Json document = HONE_TRY(parse_json_file(flags.messages));
  if (!document.is_object() || !document.contains("messages")) {
    return Error{ErrorCode::BadInput,
                 Fault::User,
                 flags.messages,
                 "the file has no messages",
                 "{\"messages\": [..]}",
                 {},
                 {}};
  }
  ChatOptions options;
  options.add_generation_prompt = flags.add_generation_prompt;
  for (const std::string& assignment : flags.variables) {
    const std::size_t equals = assignment.find('=');
    Json value =
        equals == std::string::npos ? Json() : Json::parse(assignment.substr(equals + 1), nullptr, false);
    if (equals == std::string::npos || value.is_discarded()) {
      return Error{ErrorCode::Usage,        Fault::User, "--set", "a variable is set with name=json",
                   "enable_thinking=false", assignment,  {}};
    }
    options.variables[assignment.substr(0, equals)] = std::move(value);
  }
  const Json tools = document.contains("tools") ? document["tools"] : Json();
  print_text(HONE_TRY(render_chat(tokenizer.chat_template(), document["messages"], tools,
                                  special_token_texts(tokenizer), options)),
             flags.json);
  return {};
}

struct TemplateFlags {
  std::string file;
  std::string context;
  bool json = false;
};

Status run_template(const TemplateFlags& flags) {
  const std::string source = HONE_TRY(read_text_file(flags.file));
  const Json context = HONE_TRY(parse_json_file(flags.context));
  print_text(HONE_TRY(render_template(source, context)), flags.json);
  return {};
}

}  // namespace

Verb add_render(const CommandLine& line) {
  const Command verb = line.add_verb("render", "the chat template applied to messages");
  auto flags = std::make_shared<RenderFlags>();
  flags->add_to(verb, true);
  verb.option("--messages", flags->messages, "a JSON file with `messages`, optionally `tools`").required();
  verb.flag("--add-generation-prompt", flags->add_generation_prompt, "end where the answer begins");
  verb.option("--set", flags->variables, "another variable of the template: name=json");
  return {verb, &flags->json, [flags] { return run_render(*flags); }};
}

Verb add_template(const CommandLine& line) {
  const Command verb = line.add_verb("template", "one Jinja template over a JSON context");
  auto flags = std::make_shared<TemplateFlags>();
  verb.option("FILE", flags->file, "the template").required();
  verb.option("--context", flags->context, "a JSON file: the variables").required();
  verb.flag("--json", flags->json, "answer as one JSON document");
  return {verb, &flags->json, [flags] { return run_template(*flags); }};
}

}  // namespace hone
