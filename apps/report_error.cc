#include "report_error.h"

#include <cstdio>
#include <fmt/format.h>

#include "exit_code.h"

namespace hone {
namespace {

// Further lines of a part stand under its first.
std::string indented(std::string_view text, std::size_t columns) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out.append(columns, ' ');
  }
  return out;
}

}  // namespace

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::User:
      return "user";
    case Fault::File:
      return "file";
    case Fault::Hone:
      return "hone";
  }
  return "hone";
}

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::Internal:
      return "internal";
    case ErrorCode::Usage:
      return "usage";
    case ErrorCode::BadFile:
      return "bad_file";
    case ErrorCode::BadModel:
      return "bad_model";
    case ErrorCode::BadInput:
      return "bad_input";
    case ErrorCode::DoesNotFit:
      return "does_not_fit";
    case ErrorCode::CheckFailed:
      return "check_failed";
    case ErrorCode::Interrupted:
      return "interrupted";
  }
  return "internal";
}

std::string error_block(const Error& error, std::string_view program) {
  std::string out = fmt::format("{}: error ({}): {}\n", program, fault_name(error.fault), error.message);
  const auto part = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out += fmt::format("  {:<9} {}\n", fmt::format("{}:", name), indented(text, 12));
  };
  part("where", error.where);
  part("expected", error.expected);
  part("actual", error.actual);
  part("try", error.next_step);
  return out;
}

int report_error(const Error& error, std::string_view program) {
  const std::string block = error_block(error, program);
  std::fwrite(block.data(), 1, block.size(), stderr);
  return exit_code(error.code);
}

}  // namespace hone
