#include "apps/interrupt.h"

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <termios.h>
#include <unistd.h>
#include <utility>

#include "apps/exit_code.h"
#include "apps/report_error.h"

namespace hone {
namespace {

volatile std::sig_atomic_t flag = 0;

// What the handler writes, made before it is set: a handler may call little else than write.
std::string block_text;
std::string document_text;

termios terminal{};
bool terminal_known = false;
std::string farewell_text;

void write_whole(int descriptor, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = write(descriptor, text.data() + done, text.size() - done);
    if (put <= 0) return;
    done += static_cast<std::size_t>(put);
  }
}

// Copies of the paths, for unlink in a handler; null: free.
constexpr std::size_t kSlots = 4;
std::array<std::atomic<char*>, kSlots> removed_paths{};
static_assert(std::atomic<char*>::is_always_lock_free);

void remove_files() {
  for (const std::atomic<char*>& path : removed_paths) {
    const char* text = path.load();
    if (text != nullptr) unlink(text);
  }
}

// As it would end without a handler, the files gone.
void on_termination(int) {
  remove_files();
  if (terminal_known) tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
  std::signal(SIGTERM, SIG_DFL);
  std::raise(SIGTERM);
}

void end_now(int) {
  remove_files();
  if (terminal_known) tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
  write_whole(STDOUT_FILENO, document_text);
  write_whole(STDERR_FILENO, block_text);
  _exit(exit_code(ErrorCode::Interrupted));
}

void end_quietly(int) {
  if (terminal_known) tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
  write_whole(STDERR_FILENO, farewell_text);
  _exit(exit_code(ErrorCode::Interrupted));
}

void on_interrupt(int) {
  if (flag != 0) end_now(0);
  flag = 1;
}

void set_handler_of(int signal, void (*handler)(int)) {
  struct sigaction before{};
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) return;
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void set_handler(void (*handler)(int)) {
  set_handler_of(SIGINT, handler);
  set_handler_of(SIGTERM, on_termination);
}

}  // namespace

void end_on_interrupt(std::string document) {
  block_text = error_block(interrupted_error(), "hone");
  document_text = std::move(document);
  set_handler(end_now);
}

void end_on_interrupt_at_prompt(std::string farewell) {
  // Not while the handler that reads it is set.
  if (farewell_text.empty()) farewell_text = std::move(farewell);
  if (!terminal_known) terminal_known = tcgetattr(STDIN_FILENO, &terminal) == 0;
  set_handler(end_quietly);
}

RemovedOnInterrupt::RemovedOnInterrupt(const std::string& path) : slot_(kSlots) {
  char* copy = strdup(path.c_str());
  for (std::size_t i = 0; i < kSlots; ++i) {
    char* free_slot = nullptr;
    if (!removed_paths[i].compare_exchange_strong(free_slot, copy)) continue;
    slot_ = i;
    return;
  }
  std::free(copy);
}

RemovedOnInterrupt::~RemovedOnInterrupt() {
  if (slot_ < kSlots) std::free(removed_paths[slot_].exchange(nullptr));
}

void watch_interrupts() {
  set_handler(on_interrupt);
}

bool interrupted() {
  return flag != 0;
}
void clear_interrupt() {
  flag = 0;
}

Error interrupted_error() {
  return Error{ErrorCode::Interrupted, Fault::User, "signal", "interrupted", {}, {}, {}};
}

}  // namespace hone
