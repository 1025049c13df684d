#include "tokens/load_tokenizer.h"

#include <utility>

#include "tokens/tokenizer_gguf.h"

namespace hone {

Result<std::optional<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint) {
  if (checkpoint.metadata.find("tokenizer.ggml.model") == nullptr) return std::optional<Tokenizer>();
  const TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_gguf(checkpoint.metadata));
  return std::optional<Tokenizer>(HONE_TRY(Tokenizer::build(spec)));
}

Result<Tokenizer> require_tokenizer(const Checkpoint& checkpoint) {
  std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  if (tokenizer) return std::move(*tokenizer);
  return Error{ErrorCode::BadModel,
               Fault::User,
               checkpoint.path,
               "the model carries no tokenizer",
               "tokenizer.ggml.* keys of a GGUF file, or tokenizer.json in the folder",
               "none",
               "add the tokenizer's files to the folder"};
}

Result<std::int64_t> tokenizer_heap_bytes(const Checkpoint& checkpoint) {
  const std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  return tokenizer ? tokenizer->heap_bytes() : std::int64_t{0};
}

}  // namespace hone
