// A GGUF checkpoint in parts, NAME-00001-of-0000N.gguf (llama.cpp, gguf-split): each part is a GGUF file with
// the keys split.no (from 0), split.count and split.tensors.count; the first one has the model's metadata.
#pragma once

#include "base/result.h"
#include "file/checkpoint.h"

namespace hone {

// Completes a checkpoint that read_gguf gave: a file that is one part, whichever, becomes the whole
// checkpoint with the parts beside it; any other file comes back unchanged. Errors (BadFile): a part without
// the name or the keys of its place; parts that are missing, all of them named; a tensor in two parts;
// another number of tensors than split.tensors.count.
Result<Checkpoint> join_gguf_parts(Checkpoint part);

}  // namespace hone
