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

// As above, as data.
Result<std::optional<TokenizerSpec>> load_tokenizer_spec(const Checkpoint& checkpoint);

// The error (BadModel) of a model that carries none.
Error no_tokenizer(const std::string& path);

// As load_tokenizer; none is an error.
Result<Tokenizer> require_tokenizer(const Checkpoint& checkpoint);

// What a tokenizer takes; all 0 for none.
struct TokenizerMemory {
  std::int64_t tables = 0;  // Tokenizer::heap_bytes
  std::int64_t loading =
      0;  // Tokenizer::loading_bytes: beyond the tables, given back before weights are read
};
TokenizerMemory memory_of(const std::optional<Tokenizer>& tokenizer);

// memory_of load_tokenizer(checkpoint): builds it to know.
Result<TokenizerMemory> tokenizer_memory(const Checkpoint& checkpoint);

}  // namespace hone
