#include "apps/chat.h"

#include <fmt/format.h>
#include <optional>

#include "apps/check_ids.h"
#include "apps/interrupt.h"
#include "apps/line_editor.h"
#include "apps/plural.h"
#include "apps/report_error.h"
#include "apps/text_io.h"
#include "tokens/chat.h"

namespace hone {
namespace {

constexpr std::string_view kHelp =
    "/reset   forget the conversation\n"
    "/stats   speed of the last answer, and the room that is left\n"
    "/help    this\n"
    "/quit    leave; so do /exit, /bye and Ctrl-D. Ctrl-C stops an answer, and leaves at the prompt\n";

class Conversation {
 public:
  Conversation(const ChatSettings& settings, Session& session, const Tokenizer& tokenizer)
      : settings_(settings), session_(session), tokenizer_(tokenizer) {
    reset();
  }

  void reset() {
    messages_ = nlohmann::ordered_json::array();
    if (!settings_.system.empty()) {
      messages_.push_back({{"role", "system"}, {"content", settings_.system}});
    }
    held_.clear();
    last_.reset();
  }

  Status say(const std::string& line) {
    auto messages = messages_;
    messages.push_back({{"role", "user"}, {"content", line}});
    const std::vector<std::int32_t> ids = HONE_TRY(encode(line, messages));
    Status fits = check_length(session_, std::ssize(ids));
    if (!fits.ok()) {
      Error error = std::move(fits).error();
      error.next_step = "/reset forgets the conversation; " + error.next_step;
      return error;
    }
    // Keys of another length's rotary table are of no use to this one.
    if (session_.model().config.depends_on_length()) held_.clear();
    std::size_t shared = 0;
    while (shared < held_.size() && shared + 1 < ids.size() && held_[shared] == ids[shared]) ++shared;
    held_.clear();
    last_ = HONE_TRY(settings_.answer(ids, static_cast<std::int64_t>(shared)));
    held_ = ids;
    // The last id has not been through the model yet.
    if (!last_->ids.empty()) held_.insert(held_.end(), last_->ids.begin(), last_->ids.end() - 1);
    if (settings_.raw) return {};
    messages.push_back({{"role", "assistant"}, {"content", last_->text}});
    messages_ = std::move(messages);
    return {};
  }

  void stats() const {
    if (!last_) return print_note("no answer yet\n");
    settings_.report(*last_);
    print_note(fmt::format("{} of {} are taken\n", counted(std::ssize(held_) + 1, "token"),
                           session_.model().context));
  }

 private:
  Result<std::vector<std::int32_t>> encode(const std::string& line,
                                           const nlohmann::ordered_json& messages) const {
    if (settings_.raw) return tokenizer_.encode(line);
    // The template writes the begin token itself.
    const std::string text = HONE_TRY(render_prompt(settings_.model, tokenizer_, messages));
    return tokenizer_.encode(text, {.parse_special = true, .add_special = false});
  }

  const ChatSettings& settings_;
  Session& session_;
  const Tokenizer& tokenizer_;
  nlohmann::ordered_json messages_;
  std::vector<std::int32_t> held_;  // ids whose keys and values the state holds
  std::optional<Generation> last_;
};

}  // namespace

Result<std::string> render_prompt(const std::string& model, const Tokenizer& tokenizer,
                                  const nlohmann::ordered_json& messages) {
  if (tokenizer.chat_template().empty()) {
    return Error{ErrorCode::BadModel,
                 Fault::File,
                 model,
                 "the model has no chat template",
                 "tokenizer.chat_template, chat_template.jinja, or chat_template of tokenizer_config.json",
                 "none",
                 "continue the text as it stands with --raw"};
  }
  ChatOptions options;
  options.fuel.now = local_seconds();
  return render_chat(tokenizer.chat_template(), messages, nullptr, special_token_texts(tokenizer), options);
}

Status chat(const ChatSettings& settings, Session& session) {
  Conversation conversation(settings, session, *session.tokenizer());
  LineEditor editor("> ");
  print_note("/help lists the commands\n");
  while (true) {
    end_on_interrupt_at_prompt(LineEditor::farewell());
    const std::optional<std::string> line = editor.read();
    if (!line || *line == "/quit" || *line == "/exit" || *line == "/bye") return {};
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (*line == "/reset") {
      conversation.reset();
    } else if (*line == "/stats") {
      conversation.stats();
    } else if (*line == "/help") {
      print_note(kHelp);
    } else if (line->starts_with('/')) {
      print_note("no such command; /help lists them\n");
    } else {
      watch_interrupts();
      const Status status = conversation.say(*line);
      if (interrupted()) print_note("\n(stopped)\n");
      clear_interrupt();
      if (!status.ok()) report_error(status.error(), "hone");
      HONE_TRY(answer_status());
    }
  }
}

}  // namespace hone
