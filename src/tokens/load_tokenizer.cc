#include "tokens/load_tokenizer.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "file/mapped_file.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer_config.h"
#include "tokens/tokenizer_gguf.h"
#include "tokens/tokenizer_json.h"
#include "tokens/tokenizer_sentencepiece.h"

namespace hone {

namespace {

Result<std::optional<TokenizerSpec>> spec_from_folder(const std::string& folder) {
  std::error_code ignored;
  const std::string json = (std::filesystem::path(folder) / "tokenizer.json").string();
  if (std::filesystem::exists(json, ignored)) {
    const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(json));
    const std::string_view text(reinterpret_cast<const char*>(file->data().data()), file->size());
    TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_json(text, json));
    HONE_TRY(fill_from_config(folder, spec));
    return std::optional<TokenizerSpec>(std::move(spec));
  }
  const std::string model = (std::filesystem::path(folder) / "tokenizer.model").string();
  if (!std::filesystem::exists(model, ignored)) return std::optional<TokenizerSpec>();
  const std::shared_ptr<MappedFile> file = HONE_TRY(MappedFile::open(model));
  const SentencePieceModel pieces = HONE_TRY(parse_sentencepiece_model(file->data(), model));
  TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_sentencepiece(pieces, model));
  HONE_TRY(fill_from_config(folder, spec));
  HONE_TRY(fill_around_from_config(folder, spec));
  return std::optional<TokenizerSpec>(std::move(spec));
}

}  // namespace

Result<std::optional<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint) {
  std::optional<TokenizerSpec> spec;
  if (checkpoint.metadata.find("tokenizer.ggml.model") != nullptr) {
    spec = HONE_TRY(tokenizer_spec_from_gguf(checkpoint.metadata));
  } else if (!checkpoint.folder.empty()) {
    spec = HONE_TRY(spec_from_folder(checkpoint.folder));
  }
  if (!spec) return std::optional<Tokenizer>();
  return std::optional<Tokenizer>(HONE_TRY(Tokenizer::build(*spec)));
}

Result<Tokenizer> require_tokenizer(const Checkpoint& checkpoint) {
  std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  if (tokenizer) return std::move(*tokenizer);
  return Error{ErrorCode::BadModel,
               Fault::User,
               checkpoint.path,
               "the model carries no tokenizer",
               "tokenizer.ggml.* keys of a GGUF file, or tokenizer.json or tokenizer.model in the folder",
               "none",
               "add the tokenizer's files to the folder"};
}

Result<std::int64_t> tokenizer_heap_bytes(const Checkpoint& checkpoint) {
  const std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  return tokenizer ? tokenizer->heap_bytes() : std::int64_t{0};
}

}  // namespace hone
