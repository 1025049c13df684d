#include "apps/line_editor.h"

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <histedit.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "apps/keys.h"
#include "apps/text_io.h"

namespace hone {
namespace {

bool marks_pastes() {
  const char* terminal = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return terminal != nullptr && *terminal != '\0' && std::string_view(terminal) != "dumb";
}

// A key's bytes come together; what comes later is another key.
constexpr int kKeyMilliseconds = 50;

int read_byte(bool soon) {
  pollfd ready{STDIN_FILENO, POLLIN, 0};
  if (soon && poll(&ready, 1, kKeyMilliseconds) != 1) return -1;
  unsigned char byte = 0;
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got == 1) return byte;
    if (got == 0 || errno != EINTR) return -1;
  }
}

}  // namespace

struct LineEditor::State {
  std::string prompt;
  Keys keys{read_byte};
  bool marking = false;
  EditLine* editor = nullptr;
  History* history = nullptr;

  static char* show_prompt(EditLine* editor) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return state->prompt.data();
  }

  static int next_character(EditLine* editor, wchar_t* character) {
    State* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    if (!state->marking && marks_pastes()) print_note(kMarkPastes);
    state->marking = true;
    std::mbstate_t shift{};
    while (true) {
      const int next = state->keys.next();
      if (next < 0) return 0;
      const char byte = static_cast<char>(next);
      const std::size_t length = std::mbrtowc(character, &byte, 1, &shift);
      if (length <= 1) return 1;
      if (length == static_cast<std::size_t>(-1)) shift = {};
    }
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
  el_set(state_->editor, EL_GETCFN, &State::next_character);
  el_set(state_->editor, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
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
  if (std::exchange(state_->marking, false) && marks_pastes()) print_note(kStopMarkingPastes);
  if (line == nullptr || count <= 0) return std::nullopt;
  std::string out(line);
  while (!out.empty() && (out.back() == '\n' || out.back() == '\r')) out.pop_back();
  HistEvent event{};
  if (state_->history != nullptr && !out.empty()) history(state_->history, &event, H_ENTER, line);
  return out;
}

std::string LineEditor::farewell() {
  return marks_pastes() ? std::string(kStopMarkingPastes) + "\n" : "\n";
}

}  // namespace hone
