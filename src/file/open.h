// One door for every checkpoint format.
#pragma once

#include <string>

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

// Decides by the first bytes of the file, never by its suffix. Errors: those of the readers; (BadFile) bytes
// of no accepted format, named, and for PyTorch archives how to convert; (BadModel) a folder.
Result<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace hone
