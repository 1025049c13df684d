// The exit codes of hone's commands.
#pragma once

#include "base/result.h"

namespace hone {

inline constexpr int kExitDone = 0;

constexpr int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::Internal:
      return 1;
    case ErrorCode::Usage:
      return 2;
    case ErrorCode::BadFile:
    case ErrorCode::BadModel:
    case ErrorCode::BadInput:
      return 3;
    case ErrorCode::DoesNotFit:
      return 4;
    case ErrorCode::CheckFailed:
      return 5;
    case ErrorCode::Interrupted:
      return 130;
  }
  return 1;
}

}  // namespace hone
