#include "tokens/gguf_tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <utility>

#include "tokens/gguf_pre_tokenizer.h"
#include "tokens/tokenizer_error.h"

namespace hone {

namespace {

Error not_in_gguf(std::string where, std::string_view what, std::string expected) {
  return Error{ErrorCode::BadModel,
               Fault::File,
               std::move(where),
               fmt::format("GGUF has no way to say {}", what),
               std::move(expected),
               {},
               "keep the folder for its tokenizer, and give hone token ids (--ids)"};
}

// The tables of GGUF, by id.
struct Tables {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  std::vector<std::string> notes;
};

// How llama.cpp's converter scores what is no piece.
constexpr float kAddedScore = -1000.0F;

Result<Tables> tables_of(const TokenizerSpec& spec, std::int64_t vocabulary) {
  const ModelSpec& model = spec.model;
  std::int64_t count = static_cast<std::int64_t>(model.tokens.size());
  for (const AddedToken& added : spec.added_tokens) count = std::max<std::int64_t>(count, added.id + 1);
  if (count > vocabulary) {
    return bad_tokenizer(spec.places.tokens, "the model has a row for each token of its tokenizer",
                         fmt::format("ids under {}", vocabulary), fmt::format("id {}", count - 1));
  }
  Tables out;
  const auto size = static_cast<std::size_t>(vocabulary);
  out.tokens.resize(size);
  out.types.assign(size, static_cast<std::int32_t>(TokenType::Unused));
  out.scores.assign(size, kAddedScore);
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    if (model.tokens[id].empty()) continue;
    out.tokens[id] = model.tokens[id];
    out.types[id] = static_cast<std::int32_t>(model.types.empty() ? TokenType::Normal : model.types[id]);
    if (!model.scores.empty()) out.scores[id] = model.scores[id];
  }
  for (const AddedToken& added : spec.added_tokens) {
    const auto id = static_cast<std::size_t>(added.id);
    out.tokens[id] = added.content;
    const bool keeps_type =
        !model.types.empty() && id < model.types.size() && model.types[id] != TokenType::Normal;
    if (!keeps_type) {
      out.types[id] = static_cast<std::int32_t>(added.special ? TokenType::Control : TokenType::UserDefined);
    }
    std::string lost;
    const auto lose = [&lost](bool has, std::string_view name) {
      if (has) lost += fmt::format("{}{}", lost.empty() ? "" : ", ", name);
    };
    lose(added.lstrip, "lstrip");
    lose(added.rstrip, "rstrip");
    lose(added.single_word, "single_word");
    lose(added.normalized && !spec.normaliser.empty(), "normalized");
    if (!lost.empty())
      out.notes.push_back(fmt::format("token {} loses {}: GGUF has no key for it", added.content, lost));
  }
  for (std::size_t id = 0; id < size; ++id) {
    if (out.tokens[id].empty()) out.tokens[id] = fmt::format("[PAD{}]", id);
  }
  return out;
}

Status check_around(const TokenizerSpec& spec) {
  const auto only = [](const std::vector<std::int32_t>& ids, std::optional<std::int32_t> role) {
    return ids.empty() || (role && ids == std::vector{*role});
  };
  if (only(spec.before, spec.special.bos) && only(spec.after, spec.special.eos)) return {};
  return not_in_gguf("post_processor", "tokens around a text other than bos and eos",
                     "the begin token in front, the end token behind");
}

void add_roles(const TokenizerSpec& spec, GgufWriter& writer) {
  const auto add = [&writer](std::string_view name, std::optional<std::int32_t> id) {
    if (id) writer.add_u32(fmt::format("tokenizer.ggml.{}_token_id", name), static_cast<std::uint32_t>(*id));
  };
  add("bos", spec.special.bos);
  add("eos", spec.special.eos);
  add("unknown", spec.special.unknown);
  add("padding", spec.special.padding);
  add("eot", spec.special.end_of_turn);
  writer.add_bool("tokenizer.ggml.add_bos_token", !spec.before.empty());
  writer.add_bool("tokenizer.ggml.add_eos_token", !spec.after.empty());
  if (!spec.chat_template.empty()) writer.add_string("tokenizer.chat_template", spec.chat_template);
}

Result<std::vector<std::string>> add_byte_level(const TokenizerSpec& spec, std::int64_t vocabulary,
                                                GgufWriter& writer) {
  const ModelSpec& model = spec.model;
  const std::optional<std::string_view> pre = gguf_pre_tokenizer_name(spec);
  if (!pre) {
    return not_in_gguf(spec.places.pre_tokenizer, "this normaliser and pre-tokeniser",
                       fmt::format("one of {}", gguf_pre_tokenizer_names()));
  }
  if (model.byte_fallback || !model.continuing_prefix.empty() || !model.end_suffix.empty()) {
    return not_in_gguf(spec.places.tokens,
                       "byte_fallback, continuing_subword_prefix or end_of_word_suffix of BPE",
                       "byte-level BPE");
  }
  HONE_TRY(check_around(spec));
  Tables tables = HONE_TRY(tables_of(spec, vocabulary));
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", *pre);
  writer.add_strings("tokenizer.ggml.tokens", tables.tokens);
  writer.add_i32s("tokenizer.ggml.token_type", tables.types);
  std::vector<std::string> merges;
  merges.reserve(model.merges.size() / 2);
  for (std::size_t i = 0; i + 1 < model.merges.size(); i += 2) {
    merges.push_back(fmt::format("{} {}", model.merges[i], model.merges[i + 1]));
  }
  writer.add_strings("tokenizer.ggml.merges", merges);
  add_roles(spec, writer);
  return std::move(tables.notes);
}

Result<std::vector<std::string>> add_sentencepiece(const TokenizerSpec& spec, std::int64_t vocabulary,
                                                   GgufWriter& writer) {
  const ModelSpec& model = spec.model;
  const NormaliserStep& step = spec.normaliser.front();
  if (!step.spm.escape_whitespaces || step.spm.whitespace_as_suffix) {
    return not_in_gguf(spec.places.normalizer, "escape_whitespaces = false, or treat_whitespace_as_suffix",
                       "a blank becomes U+2581 in front of its word");
  }
  const bool has_bytes = std::ranges::find(model.types, TokenType::Byte) != model.types.end();
  if (has_bytes != model.byte_fallback) {
    return not_in_gguf(spec.places.tokens, "byte tokens that no byte falls back to", "byte_fallback");
  }
  HONE_TRY(check_around(spec));
  Tables tables = HONE_TRY(tables_of(spec, vocabulary));
  if (spec.decoder.front().content != " \xE2\x81\x87 ") {
    tables.notes.push_back("the unknown token decodes to U+2047: GGUF has no key for another text");
  }
  writer.add_string("tokenizer.ggml.model", model.kind == ModelSpec::Kind::Unigram ? "t5" : "llama");
  writer.add_string("tokenizer.ggml.pre", "default");
  writer.add_strings("tokenizer.ggml.tokens", tables.tokens);
  writer.add_f32s("tokenizer.ggml.scores", tables.scores);
  writer.add_i32s("tokenizer.ggml.token_type", tables.types);
  writer.add_bool("tokenizer.ggml.add_space_prefix", step.spm.add_dummy_prefix);
  writer.add_bool("tokenizer.ggml.remove_extra_whitespaces", step.spm.remove_extra_whitespaces);
  if (!step.content.empty()) {
    writer.add_u8s("tokenizer.ggml.precompiled_charsmap", std::as_bytes(std::span(step.content)));
  }
  add_roles(spec, writer);
  return std::move(tables.notes);
}

}  // namespace

Result<std::vector<std::string>> add_gguf_tokenizer(const TokenizerSpec& spec, std::int64_t vocabulary,
                                                    GgufWriter& writer) {
  const bool of_spm = spec.normaliser.size() == 1 && spec.decoder.size() == 1 &&
                      spec.normaliser.front().kind == NormaliserStep::Kind::SentencePiece;
  switch (spec.model.kind) {
    case ModelSpec::Kind::Bpe:
      return add_byte_level(spec, vocabulary, writer);
    case ModelSpec::Kind::SentencePieceBpe:
    case ModelSpec::Kind::Unigram:
      if (of_spm) return add_sentencepiece(spec, vocabulary, writer);
      break;
    case ModelSpec::Kind::SentencePieceWord:
    case ModelSpec::Kind::SentencePieceChar:
      break;
  }
  return not_in_gguf(spec.places.tokens, "this kind of tokenizer",
                     "byte-level BPE, or SentencePiece's BPE or unigram model");
}

}  // namespace hone
