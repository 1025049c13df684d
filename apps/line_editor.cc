#include "apps/line_editor.h"

#include <clocale>
#include <cstdio>
#include <histedit.h>
#include <utility>

namespace hone {

struct LineEditor::State {
  std::string prompt;
  EditLine* editor = nullptr;
  History* history = nullptr;

  static char* show_prompt(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return state->prompt.data();
  }
};

LineEditor::LineEditor(std::string prompt) : state_(std::make_unique<State>()) {
  state_->prompt = std::move(prompt);
  // Characters of several bytes are edited as one.
  std::setlocale(LC_CTYPE, "C.UTF-8");
  state_->editor = el_init("hone", stdin, stderr, stderr);
  state_->history = history_init();
  HistEvent event{};
  if (state_->history != nullptr) history(state_->history, &event, H_SETSIZE, 1000);
  if (state_->editor == nullptr) return;
  el_set(state_->editor, EL_CLIENTDATA, state_.get());
  el_set(state_->editor, EL_PROMPT, &State::show_prompt);
  el_set(state_->editor, EL_EDITOR, "emacs");
  el_set(state_->editor, EL_SIGNAL, 0);
  if (state_->history != nullptr) el_set(state_->editor, EL_HIST, history, state_->history);
}

LineEditor::~LineEditor() {
  if (state_->editor != nullptr) el_end(state_->editor);
  if (state_->history != nullptr) history_end(state_->history);
}

std::optional<std::string> LineEditor::read() {
  if (state_->editor == nullptr) return std::nullopt;
  int count = 0;
  const char* line = el_gets(state_->editor, &count);
  if (line == nullptr || count <= 0) return std::nullopt;
  std::string out(line);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
  HistEvent event{};
  if (state_->history != nullptr && !out.empty()) history(state_->history, &event, H_ENTER, line);
  return out;
}

}  // namespace hone
