#include "apps/keys.h"

namespace hone {
namespace {

constexpr int kEscape = 0x1b;

struct Key {
  std::string_view sequence;  // behind the escape
  std::string_view command;   // in the editor's emacs mode
};
constexpr Key kKeys[] = {
    {"[A", "\x10"},
    {"OA", "\x10"},
    {"[B", "\x0e"},
    {"OB", "\x0e"},  // up, down
    {"[C", "\x06"},
    {"OC", "\x06"},
    {"[D", "\x02"},
    {"OD", "\x02"},  // right, left
    {"[H", "\x01"},
    {"OH", "\x01"},
    {"[1~", "\x01"},
    {"[7~", "\x01"},  // Home
    {"[F", "\x05"},
    {"OF", "\x05"},
    {"[4~", "\x05"},
    {"[8~", "\x05"},  // End
    {"[1;5C",
     "\x1b"
     "f"},
    {"[1;3C",
     "\x1b"
     "f"},
    {"[5C",
     "\x1b"
     "f"},
    {"Oc",
     "\x1b"
     "f"},  // word right
    {"[1;5D",
     "\x1b"
     "b"},
    {"[1;3D",
     "\x1b"
     "b"},
    {"[5D",
     "\x1b"
     "b"},
    {"Od",
     "\x1b"
     "b"},  // word left
    {"[3~", "\x1b[3~"},
    {"[3;5~",
     "\x1b"
     "d"},  // Delete, which the editor binds; Ctrl-Delete
};

}  // namespace

int Keys::next() {
  while (ready_.empty() && !ended_) read_more();
  if (ready_.empty()) return -1;
  const int byte = static_cast<unsigned char>(ready_.front());
  ready_.pop_front();
  return byte;
}

void Keys::read_more() {
  const int byte = source_(false);
  if (byte < 0) {
    ended_ = true;
    return;
  }
  if (byte == kEscape) return read_escape();
  if (pasting_ && (byte == '\r' || byte == '\n')) {
    put("\x16\n");
  } else if (pasting_ && byte == '\t') {
    put("\x16\t");
  } else if (!pasting_ || byte >= ' ') {
    ready_.push_back(static_cast<char>(byte));
  }
}

void Keys::read_escape() {
  const int byte = source_(true);
  if (byte == '[') return read_control_sequence();
  if (byte == 'O') {
    const int letter = source_(true);
    const std::string sequence{'O', static_cast<char>(letter)};
    for (const Key& key : kKeys) {
      if (letter >= 0 && key.sequence == sequence) put(key.command);
    }
    return;
  }
  if (pasting_) return;
  ready_.push_back(kEscape);
  if (byte >= 0) ready_.push_back(static_cast<char>(byte));
}

// ECMA-48: parameters and intermediates 0x20 to 0x3f, then one byte from 0x40 on.
void Keys::read_control_sequence() {
  std::string sequence = "[";
  int byte = source_(true);
  if (byte == '[') {  // a function key of the Linux console has one letter more
    source_(true);
    return;
  }
  while (byte >= 0x20 && byte < 0x40) {
    if (sequence.size() < 16) sequence += static_cast<char>(byte);
    byte = source_(true);
  }
  if (byte < 0x40) return;
  sequence += static_cast<char>(byte);
  if (sequence == "[200~") pasting_ = true;
  if (sequence == "[201~") pasting_ = false;
  if (pasting_) return;
  for (const Key& key : kKeys) {
    if (key.sequence == sequence) put(key.command);
  }
}

}  // namespace hone
