// The tokenizer of a checkpoint, wherever the checkpoint keeps it.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "file/checkpoint.h"
#include "tokens/tokenizer.h"

namespace hone {

// From the metadata of a GGUF file, or from tokenizer.json in the checkpoint's folder, or where that is
// missing from tokenizer.model, with the files beside it (tokens/tokenizer_config.h). nullopt where there is
// none. Errors: those of the readers and of Tokenizer::build.
Result<std::optional<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint);

// As above; none is an error (BadModel).
Result<Tokenizer> require_tokenizer(const Checkpoint& checkpoint);

// Tokenizer::heap_bytes of that tokenizer, 0 for none. Builds it to know.
Result<std::int64_t> tokenizer_heap_bytes(const Checkpoint& checkpoint);

}  // namespace hone
