#include "file/file_error.h"

#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace hone {
namespace {

constexpr std::size_t kQuotedBytes = 60;

// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

}  // namespace

Error bad_file_at(std::string_view path, std::uint64_t offset, std::string message, std::string expected,
                  std::string actual, std::string next_step) {
  return Error{ErrorCode::BadFile,  Fault::File,         fmt::format("{}, byte {}", path, offset),
               std::move(message),  std::move(expected), std::move(actual),
               std::move(next_step)};
}

Error system_error(std::string_view path, std::string message, int number, std::string next_step) {
  return Error{
      ErrorCode::BadFile,
      Fault::User,
      std::string(path),
      std::move(message),
      {},
      number == 0 ? std::string() : std::string(std::strerror(number)),  // NOLINT(concurrency-mt-unsafe)
      std::move(next_step)};
}

std::string printable(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += text.size() > kQuotedBytes ? fmt::format("...\" ({} bytes)", text.size()) : "\"";
  return out;
}

bool is_usable_name(std::string_view text) {
  if (text.empty()) return false;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const std::size_t length = sequence_length(text);
    if (length == 0 || first < 0x20 || first == 0x7f) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace hone
