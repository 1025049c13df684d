// Text into and out of a command. What stdout does not take is an error: a truncated answer must not pass for
// a whole one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// A regular file is read up to the first limit. A pipe or device tells no size beforehand and may never end:
// the second.
inline constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 30;
inline constexpr std::int64_t kMostStreamBytes = std::int64_t{32} << 20;

// Opens those of stdin, stdout and stderr that the caller closed, so that no file of ours takes their number.
// Reads find an end, writes fail.
void open_standard_streams();

// A text file, byte for byte. Errors (BadInput): missing, unreadable, a directory, longer than the limits
// above.
Result<std::string> read_text_file(const std::string& path);
// The same of stdin, to its end.
Result<std::string> read_stdin();

// stdout gets exactly this. A failure is kept for answer_status.
void print_answer(std::string_view text);
// An error (BadFile) if stdout has refused a byte since the start.
Status answer_status();

// stderr.
void print_note(std::string_view text);

}  // namespace hone
