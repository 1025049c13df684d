// How hone's commands tell an error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace hone {

// "user", "file", "hone"
std::string_view fault_name(Fault fault);
// "internal", "usage", "bad_file", ...
std::string_view error_code_name(ErrorCode code);

// The block of lines, with a line for each part that is not empty:
//
//   hone: error (user): no pass has this name
//     where:    --passes
//     expected: one of fold-constants, ..
//     actual:   'fuse-nrom'
//     try:      did you mean 'fuse-norm'?
std::string error_block(const Error& error, std::string_view program);

// Writes the block to stderr and returns the exit code for it.
int report_error(const Error& error, std::string_view program);

}  // namespace hone
