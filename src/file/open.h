// One door for every checkpoint format.
#pragma once

#include <string>

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

// A folder is a Hugging Face folder; so is a safetensors file beside a config.json, with that file's tensors
// only. For other files the first bytes decide, never the suffix. Errors: those of the readers; (BadFile)
// bytes of no accepted format, named, and for PyTorch archives how to convert.
Result<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace hone
