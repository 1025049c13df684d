// hone render and hone template: a chat template applied, and any template over any context.
#include <filesystem>
#include <fmt/format.h>
#include <memory>

#include "apps/verb.h"
#include "file/open.h"
#include "tokens/chat.h"
#include "tokens/chat_source.h"
#include "tokens/exact_json.h"
#include "tokens/load_tokenizer.h"

namespace hone {
namespace {

Result<Json> parse_json_file(const std::string& path) {
  return parse_exact_json(HONE_TRY(read_text_file(path)), path);
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

// A folder may have just the tokenizer's files; a file carries its template in its metadata.
Result<ChatSource> chat_source(const std::string& model) {
  std::error_code ignored;
  if (std::filesystem::is_directory(model, ignored)) return read_chat_source(model);
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(model));
  const Tokenizer tokenizer = HONE_TRY(require_tokenizer(checkpoint));
  ChatSource out;
  if (!tokenizer.chat_template().empty()) out.templates.emplace_back("default", tokenizer.chat_template());
  out.special = special_token_texts(tokenizer);
  return out;
}

Status run_render(const RenderFlags& flags) {
  const ChatSource source = HONE_TRY(chat_source(flags.model));
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
  options.fuel.now = local_seconds();
  options.add_generation_prompt = flags.add_generation_prompt;
  for (const std::string& assignment : flags.variables) {
    const std::size_t equals = assignment.find('=');
    const auto value =
        parse_exact_json(assignment.substr(equals == std::string::npos ? 0 : equals + 1), "--set");
    if (equals == std::string::npos || !value.ok()) {
      return Error{ErrorCode::Usage,        Fault::User, "--set", "a variable is set with name=json",
                   "enable_thinking=false", assignment,  {}};
    }
    options.variables[assignment.substr(0, equals)] = *value;
  }
  const Json tools = document.contains("tools") ? document["tools"] : Json();
  const std::string* text = choose_template(source, !tools.is_null());
  if (text == nullptr) {
    std::string names;
    for (const auto& [name, each] : source.templates) names += (names.empty() ? "" : ", ") + name;
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 flags.model,
                 "the model has no chat template",
                 "tokenizer.chat_template, chat_template.jinja, or chat_template of tokenizer_config.json",
                 names.empty() ? "none" : fmt::format("only {}", names),
                 "hone template FILE renders a template of your own; hone run --raw goes without one"};
  }
  print_text(HONE_TRY(render_chat(*text, document["messages"], tools, source.special, options)), flags.json);
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
  Fuel fuel;
  fuel.now = local_seconds();
  print_text(HONE_TRY(render_template(source, context, fuel)), flags.json);
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
