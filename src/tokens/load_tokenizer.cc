#include "tokens/load_tokenizer.h"

#include <algorithm>
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
    // The text is as large as the tables that come of it: what is read of it does not stay beside them.
    const auto drop = [&](std::size_t read) { file->drop(0, read); };
    TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_json(text, json, drop));
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

// What is written of the containers that grow with the vocabulary; their capacity beyond it is never touched.
std::int64_t heap_bytes(const TokenizerSpec& spec) {
  const ModelSpec& model = spec.model;
  std::size_t sum = model.types.size() * sizeof(model.types[0]) +
                    model.scores.size() * sizeof(model.scores[0]) +
                    spec.added_tokens.size() * sizeof(spec.added_tokens[0]) + spec.chat_template.size();
  for (const NormaliserStep& step : spec.normaliser) sum += step.content.size();
  for (const StringTable* table : {&model.tokens, &model.merges}) {
    sum += table->bytes() + table->size() * sizeof(std::uint32_t);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace

Result<std::optional<TokenizerSpec>> load_tokenizer_spec(const Checkpoint& checkpoint) {
  if (checkpoint.metadata.find("tokenizer.ggml.model") != nullptr) {
    return std::optional(HONE_TRY(tokenizer_spec_from_gguf(checkpoint.metadata)));
  }
  if (checkpoint.folder.empty()) return std::optional<TokenizerSpec>();
  return spec_from_folder(checkpoint.folder);
}

Result<std::optional<Tokenizer>> load_tokenizer(const Checkpoint& checkpoint) {
  const std::optional<TokenizerSpec> spec = HONE_TRY(load_tokenizer_spec(checkpoint));
  if (!spec) return std::optional<Tokenizer>();
  Tokenizer tokenizer = HONE_TRY(Tokenizer::build(*spec));
  // While the tables grow, one number a token stands beside: its place in an order.
  const std::size_t beside = spec->model.tokens.size() * sizeof(std::int32_t);
  tokenizer.set_loading_bytes(heap_bytes(*spec) + static_cast<std::int64_t>(beside));
  return std::optional<Tokenizer>(std::move(tokenizer));
}

Error no_tokenizer(const std::string& path) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               path,
               "the model carries no tokenizer",
               "tokenizer.ggml.* keys of a GGUF file, or tokenizer.json or tokenizer.model in the folder",
               "none",
               "add the tokenizer's files to the folder, or give token ids: --ids 1,2,3"};
}

Result<Tokenizer> require_tokenizer(const Checkpoint& checkpoint) {
  std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  if (tokenizer) return std::move(*tokenizer);
  return no_tokenizer(checkpoint.path);
}

TokenizerMemory memory_of(const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return {};
  return {tokenizer->heap_bytes(), tokenizer->loading_bytes()};
}

Result<TokenizerMemory> tokenizer_memory(const Checkpoint& checkpoint) {
  const std::optional<Tokenizer> tokenizer = HONE_TRY(load_tokenizer(checkpoint));
  return memory_of(tokenizer);
}

}  // namespace hone
