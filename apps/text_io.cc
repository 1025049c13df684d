#include "apps/text_io.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "apps/plural.h"

namespace hone {
namespace {

int answer_errno = 0;  // of the first write to stdout that failed

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

Error unreadable(const std::string& name, std::string actual) {
  return Error{ErrorCode::BadInput,
               Fault::User,
               name,
               "the file cannot be read",
               "a readable file",
               std::move(actual),
               "check the path and its permissions"};
}

Error too_long(const std::string& name, std::int64_t limit, std::string actual) {
  return Error{
      ErrorCode::BadInput, Fault::User,     name, "the text is too long", "at most " + counted(limit, "byte"),
      std::move(actual),   "split the text"};
}

Result<std::string> read_all(int descriptor, const std::string& name) {
  struct stat info{};
  if (fstat(descriptor, &info) != 0) return unreadable(name, errno_text(errno));
  if (S_ISDIR(info.st_mode)) return unreadable(name, "a directory");
  const bool regular = S_ISREG(info.st_mode);
  const std::int64_t limit = regular ? kMostFileBytes : kMostStreamBytes;
  std::string text;
  if (regular) {
    if (info.st_size > limit) return too_long(name, limit, counted(info.st_size, "byte"));
    text.reserve(static_cast<std::size_t>(info.st_size));
  }
  std::array<char, 65536> part{};
  while (true) {
    const ssize_t got = read(descriptor, part.data(), part.size());
    if (got == 0) return text;
    if (got < 0) {
      if (errno == EINTR) continue;
      return unreadable(name, errno_text(errno));
    }
    if (static_cast<std::int64_t>(text.size()) + got > limit) return too_long(name, limit, "more");
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    // open takes the lowest free number, which is this one.
    if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) static_cast<void>(open("/dev/null", O_RDONLY));
  }
}

Result<std::string> read_text_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return unreadable(path, errno_text(errno));
  Result<std::string> text = read_all(descriptor, path);
  close(descriptor);
  return text;
}

Result<std::string> read_stdin() {
  return read_all(STDIN_FILENO, "stdin");
}

void print_answer(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  const bool flushed = std::fflush(stdout) == 0;
  if (!(written && flushed) && answer_errno == 0) answer_errno = errno != 0 ? errno : EIO;
}

Status answer_status() {
  // --help is printed through C++ streams, which share this buffer.
  print_answer("");
  if (answer_errno == 0) return {};
  return Error{ErrorCode::BadFile,
               Fault::User,
               "stdout",
               "the answer must be written in full",
               {},
               errno_text(answer_errno),
               "give stdout a place that takes it; what was written is incomplete"};
}

void print_note(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace hone
