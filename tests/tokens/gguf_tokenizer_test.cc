// Tokenizers of folders written as keys of GGUF and read again: the same ids, the same text, or a refusal by
// name.
#include "tokens/gguf_tokenizer.h"

#include <filesystem>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "file/gguf.h"
#include "file/open.h"
#include "json_lines.h"
#include "tokens/gguf_pre_tokenizer.h"
#include "tokens/load_tokenizer.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/tokenizer_json.h"
#include "tokens/tokenizer_sentencepiece.h"

namespace hone {
namespace {

// A tokenizer that went through the bytes of a file.
struct Written {
  std::vector<std::byte> bytes;
  std::vector<std::string> notes;
  std::optional<Tokenizer> tokenizer;
};

Result<Written> write(const TokenizerSpec& spec, std::int64_t vocabulary) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_tensor("token_embd.weight", DType::F32, {1});
  Written out;
  out.notes = HONE_TRY(add_gguf_tokenizer(spec, vocabulary, writer));
  out.bytes = HONE_TRY(writer.header());
  out.bytes.resize(out.bytes.size() + 32);
  const Checkpoint file = HONE_TRY(parse_gguf(out.bytes, "written"));
  out.tokenizer = HONE_TRY(Tokenizer::from_metadata(file.metadata));
  return out;
}

Result<TokenizerSpec> published(const std::string& name) {
  const Checkpoint folder = HONE_TRY(open_checkpoint(HONE_VOCAB_DIR "/" + name));
  std::optional<TokenizerSpec> spec = HONE_TRY(load_tokenizer_spec(folder));
  if (!spec) return Error{ErrorCode::BadModel, Fault::File, name, "no tokenizer", {}, {}, {}};
  return std::move(*spec);
}

Result<TokenizerSpec> sentencepiece(const std::string& name) {
  const std::string bytes = read_text(HONE_SPM_DIR "/" + name + ".model");
  const SentencePieceModel model = HONE_TRY(parse_sentencepiece_model(std::as_bytes(std::span(bytes)), name));
  return tokenizer_spec_from_sentencepiece(model, name);
}

std::int64_t ids_of(const TokenizerSpec& spec) {
  auto count = static_cast<std::int64_t>(spec.model.tokens.size());
  for (const AddedToken& added : spec.added_tokens) count = std::max<std::int64_t>(count, added.id + 1);
  return count;
}

// Over the corpus, with and without tokens around. `special`: also with tokens that the text spells; a GGUF
// file of SentencePiece's kinds has its unknown token among them, tokenizer.model does not.
void expect_the_same(const Tokenizer& expected, const Tokenizer& actual, bool special) {
  const auto corpus = read_json_lines(HONE_TEST_DATA "/tokenizer/corpus.jsonl");
  ASSERT_EQ(corpus.size(), 585U);
  for (const auto& line : corpus) {
    const std::string text = line["text"];
    for (const EncodeOptions options : {EncodeOptions{.parse_special = special},
                                        EncodeOptions{.parse_special = false, .add_special = false}}) {
      const auto ids = expected.encode(text, options);
      const auto ours = actual.encode(text, options);
      ASSERT_TRUE(ids.ok() && ours.ok()) << text;
      ASSERT_EQ(*ours, *ids) << text;
      ASSERT_EQ(actual.decode(*ids), expected.decode(*ids)) << text;
      ASSERT_EQ(actual.decode(*ids, {.skip_special = true}), expected.decode(*ids, {.skip_special = true}))
          << text;
    }
  }
}

void expect_written(const Result<TokenizerSpec>& spec, bool special) {
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  const auto original = Tokenizer::build(*spec);
  ASSERT_TRUE(original.ok());
  const auto written = write(*spec, ids_of(*spec) + 7);
  ASSERT_TRUE(written.ok()) << written.error().message << ", " << written.error().where;
  const Tokenizer& tokenizer = *written->tokenizer;
  EXPECT_EQ(tokenizer.vocab_size(), ids_of(*spec) + 7);
  EXPECT_EQ(tokenizer.token_type(tokenizer.vocab_size() - 1), TokenType::Unused);
  EXPECT_EQ(tokenizer.chat_template(), original->chat_template());
  EXPECT_EQ(tokenizer.special_tokens().bos, original->special_tokens().bos);
  EXPECT_EQ(tokenizer.special_tokens().eos, original->special_tokens().eos);
  const auto padding = spec->special.padding.value_or(tokenizer.special_tokens().padding.value_or(0));
  EXPECT_EQ(tokenizer.special_tokens().padding.value_or(0), padding);
  expect_the_same(*original, tokenizer, special);
}

TEST(GgufTokenizer, PublishedTokenizersCutTextsAsBefore) {
  for (const char* name : {"qwen3", "deepseek_v3"}) {
    SCOPED_TRACE(name);
    expect_written(published(name), true);
  }
}

class GgufSentencePiece : public testing::TestWithParam<const char*> {};

TEST_P(GgufSentencePiece, CutsTextsAsBefore) {
  expect_written(sentencepiece(GetParam()), false);
}

INSTANTIATE_TEST_SUITE_P(Models, GgufSentencePiece,
                         testing::Values("bpe-llama", "bpe-gemma", "bpe-nmt", "bpe-unused", "unigram-bytes",
                                         "unigram-cf", "unigram-nmt", "unigram-unused"));

void expect_refused(const TokenizerSpec& spec, std::int64_t vocabulary, const std::string& message) {
  GgufWriter writer;
  writer.add_tensor("token_embd.weight", DType::F32, {1});
  const auto before = writer.header();
  const auto written = add_gguf_tokenizer(spec, vocabulary, writer);
  ASSERT_FALSE(written.ok()) << message;
  EXPECT_NE(written.error().message.find(message), std::string::npos) << written.error().message;
  EXPECT_EQ(*writer.header(), *before) << "something was added";
}

TEST(GgufTokenizer, WhatNoKeyCanSayIsRefusedByName) {
  for (const char* name : {"char", "word"}) {
    const auto spec = sentencepiece(name);
    ASSERT_TRUE(spec.ok());
    expect_refused(*spec, ids_of(*spec), "this kind of tokenizer");
  }
  const auto suffix = sentencepiece("unigram-suffix");
  ASSERT_TRUE(suffix.ok());
  expect_refused(*suffix, ids_of(*suffix), "treat_whitespace_as_suffix");

  const auto qwen = published("qwen3");
  ASSERT_TRUE(qwen.ok());
  expect_refused(*qwen, ids_of(*qwen) - 1, "a row for each token");
  TokenizerSpec changed = *qwen;
  changed.normaliser.clear();  // no row cuts as Qwen's and leaves out NFC
  expect_refused(changed, ids_of(*qwen), "this normaliser and pre-tokeniser");
  changed = *qwen;
  changed.pre_tokenizer.front().pattern.text += "|x";
  expect_refused(changed, ids_of(*qwen), "this normaliser and pre-tokeniser");
  changed = *qwen;
  changed.model.byte_fallback = true;
  expect_refused(changed, ids_of(*qwen), "byte_fallback");
  changed = *qwen;
  changed.before = {1, 2};
  expect_refused(changed, ids_of(*qwen), "tokens around a text");
}

TEST(GgufTokenizer, WhatAnAddedTokenLosesIsSaid) {
  auto spec = published("qwen3");
  ASSERT_TRUE(spec.ok());
  spec->added_tokens.front().rstrip = true;
  spec->added_tokens.front().single_word = true;
  const auto written = write(*spec, ids_of(*spec));
  ASSERT_TRUE(written.ok());
  ASSERT_EQ(written->notes.size(), 1U);
  EXPECT_EQ(written->notes[0], fmt::format("token {} loses rstrip, single_word: GGUF has no key for it",
                                           spec->added_tokens.front().content));
}

TEST(GgufTokenizer, TheNameOfAPreTokeniserDoesNotDependOnItsSpelling) {
  TokenizerSpec digits;
  digits.pre_tokenizer.resize(2);
  digits.pre_tokenizer[0].kind = PreTokenizerStep::Kind::Digits;
  digits.pre_tokenizer[0].individual = true;
  digits.pre_tokenizer[1].kind = PreTokenizerStep::Kind::ByteLevel;
  digits.pre_tokenizer[1].use_regex = true;
  EXPECT_EQ(gguf_pre_tokenizer_name(digits), "smollm");
  digits.pre_tokenizer.erase(digits.pre_tokenizer.begin());
  EXPECT_EQ(gguf_pre_tokenizer_name(digits), "gpt-2");
  digits.pre_tokenizer[0].add_prefix_space = true;
  EXPECT_EQ(gguf_pre_tokenizer_name(digits), std::nullopt);
}

}  // namespace
}  // namespace hone
