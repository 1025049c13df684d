// SentencePiece models of each kind, from tokenizer.model and from GGUF, beside what the sentencepiece
// package makes of the corpus and of texts that its normaliser treats in a way of its own.
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>

#include "file/open.h"
#include "json_lines.h"
#include "tokens/load_tokenizer.h"
#include "tokens/sentencepiece_model.h"
#include "tokens/stream_decoder.h"
#include "tokens/tokenizer_sentencepiece.h"
#include "tokens/utf8.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;

struct SpmCase {
  std::string text;
  Ids ids;
  std::string decoded;
};

std::string spm_path(const std::string& name) {
  return HONE_SPM_DIR "/" + name;
}

std::vector<SpmCase> spm_cases(const std::string& name) {
  std::vector<SpmCase> out;
  for (const auto& line : read_json_lines(HONE_TEST_DATA "/tokenizer/corpus.jsonl"))
    out.push_back({line["text"], {}, {}});
  for (const auto& line : read_json_lines(spm_path("extra.jsonl"))) out.push_back({line["text"], {}, {}});
  const auto expected = read_json_lines(spm_path(name + ".jsonl"));
  EXPECT_EQ(out.size(), 626U);
  EXPECT_EQ(expected.size(), out.size());
  for (std::size_t i = 0; i < std::min(out.size(), expected.size()); ++i) {
    out[i].ids = expected[i]["ids"].get<Ids>();
    out[i].decoded = expected[i]["text"];
  }
  return out;
}

Result<Tokenizer> tokenizer_from_model(const std::string& name) {
  const std::string bytes = read_text(spm_path(name + ".model"));
  const SentencePieceModel model = HONE_TRY(parse_sentencepiece_model(std::as_bytes(std::span(bytes)), name));
  const TokenizerSpec spec = HONE_TRY(tokenizer_spec_from_sentencepiece(model, name));
  return Tokenizer::build(spec);
}

Result<Tokenizer> tokenizer_from_gguf(const std::string& name) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(spm_path(name + ".gguf")));
  return require_tokenizer(checkpoint);
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDecoder decoder(tokenizer, {});
  std::string out;
  for (const std::int32_t id : ids) out += decoder.push(id).text;
  return out + decoder.finish().text;
}

void expect_as_sentencepiece(const Tokenizer& tokenizer, const std::string& name) {
  int wrong = 0;
  for (const SpmCase& each : spm_cases(name)) {
    const auto ids = tokenizer.encode(each.text, {.parse_special = false, .add_special = false});
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(*ids, each.ids) << each.text;
    EXPECT_EQ(tokenizer.decode(each.ids, {.skip_special = true}), each.decoded);
    EXPECT_EQ(streamed(tokenizer, each.ids), each.decoded);
    if (::testing::Test::HasFailure() && ++wrong == 3) return;
  }
}

class SentencePieceModels : public ::testing::TestWithParam<const char*> {};

TEST_P(SentencePieceModels, FromModelFile) {
  const auto tokenizer = tokenizer_from_model(GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_as_sentencepiece(*tokenizer, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Reference, SentencePieceModels,
                         ::testing::Values("bpe-llama", "bpe-gemma", "bpe-nmt", "bpe-unused", "unigram-bytes",
                                           "unigram-cf", "unigram-nmt", "unigram-suffix", "unigram-unused",
                                           "char", "word"));

class SentencePieceGgufs : public ::testing::TestWithParam<const char*> {};

TEST_P(SentencePieceGgufs, FromGguf) {
  const auto tokenizer = tokenizer_from_gguf(GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  expect_as_sentencepiece(*tokenizer, GetParam());
}

// Without unigram-suffix: GGUF has no key for a blank that stands at the end, nor for what unknown decodes
// to.
INSTANTIATE_TEST_SUITE_P(Reference, SentencePieceGgufs,
                         ::testing::Values("bpe-llama", "bpe-gemma", "bpe-nmt", "bpe-unused", "unigram-bytes",
                                           "unigram-cf", "unigram-nmt", "unigram-unused"));

Ids encoded(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  return ids.ok() ? *ids : Ids{-1};
}

// The metadata of a file whose writer left the roles out.
Result<Tokenizer> tokenizer_without_roles(const std::string& name) {
  const Checkpoint checkpoint = HONE_TRY(open_checkpoint(spm_path(name + ".gguf")));
  Metadata metadata("test");
  for (const MetadataEntry& entry : checkpoint.metadata.entries()) {
    const std::string_view key = entry.key;
    if (!key.ends_with("_token_id") && !key.starts_with("tokenizer.ggml.add_"))
      metadata.add(key, entry.value);
  }
  return Tokenizer::from_metadata(metadata);
}

TEST(SentencePieceText, RolesThatTheGgufLeavesOut) {
  const auto llama = tokenizer_without_roles("bpe-llama");
  ASSERT_TRUE(llama.ok()) << llama.error().message;
  EXPECT_EQ(encoded(*llama, "Hello world"), (Ids{1, 538, 579}));
  EXPECT_EQ(encoded(*llama, "<s>Hello", {.add_special = false}), (Ids{1, 538}));
  EXPECT_TRUE(llama->adds_bos());
  EXPECT_FALSE(llama->adds_eos());
  const auto t5 = tokenizer_without_roles("unigram-nmt");
  ASSERT_TRUE(t5.ok()) << t5.error().message;
  EXPECT_EQ(encoded(*t5, "Hello world"), (Ids{151, 191, 1}));
  EXPECT_FALSE(t5->adds_bos());
  EXPECT_TRUE(t5->adds_eos());
}

// SentencePiece makes them U+FFFD before anything else, and byte pieces that are no character when it
// decodes.
TEST(SentencePieceText, IllFormedBytes) {
  const auto tokenizer = tokenizer_from_model("bpe-llama");
  ASSERT_TRUE(tokenizer.ok());
  const EncodeOptions plain{.add_special = false};
  EXPECT_EQ(encoded(*tokenizer,
                    "a\xFF"
                    "b\xC3",
                    plain),
            encoded(*tokenizer,
                    "a\xEF\xBF\xBD"
                    "b\xEF\xBF\xBD",
                    plain));
  const Ids bytes{*tokenizer->special_token_id("<0xE5>"), *tokenizer->special_token_id("<0xB7>")};
  EXPECT_EQ(tokenizer->decode(bytes), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->decode(bytes, {.raw_bytes = true}), "\xE5\xB7");
}

struct SpmFolder {
  explicit SpmFolder(const std::string& name) : path(::testing::TempDir() + "spm-" + name) {
    std::filesystem::create_directories(path);
    std::filesystem::copy_file(spm_path("bpe-llama.model"), path + "/tokenizer.model",
                               std::filesystem::copy_options::overwrite_existing);
  }
  ~SpmFolder() { std::filesystem::remove_all(path); }
  SpmFolder(const SpmFolder&) = delete;
  SpmFolder& operator=(const SpmFolder&) = delete;

  Result<Tokenizer> load(const std::string& config) const {
    std::ofstream(path + "/tokenizer_config.json") << config;
    Checkpoint checkpoint;
    checkpoint.folder = path;
    return require_tokenizer(checkpoint);
  }
  std::string path;
};

TEST(SentencePieceFolder, ConfigSaysWhatStandsAround) {
  const SpmFolder folder("around");
  const auto ids = [&](const std::string& config) {
    const auto tokenizer = folder.load(config);
    return tokenizer.ok() ? encoded(*tokenizer, "Hello world") : Ids{-2};
  };
  EXPECT_EQ(ids("{}"), (Ids{538, 579}));
  EXPECT_EQ(ids(R"({"tokenizer_class": "LlamaTokenizer"})"), (Ids{1, 538, 579}));
  EXPECT_EQ(ids(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": false})"), (Ids{538, 579}));
  EXPECT_EQ(ids(R"({"tokenizer_class": "T5TokenizerFast"})"), (Ids{538, 579, 2}));
  EXPECT_EQ(ids(R"({"add_bos_token": true, "add_eos_token": true})"), (Ids{1, 538, 579, 2}));
}

TEST(SentencePieceFolder, AddedTokensHaveIdsOfTheirOwn) {
  const SpmFolder folder("added");
  const auto plain = folder.load("{}");
  ASSERT_TRUE(plain.ok());
  const std::int32_t next = plain->vocab_size();
  const auto tokenizer =
      folder.load(R"({"added_tokens_decoder": {"1": {"content": "<s>", "special": true}, ")" +
                  std::to_string(next) + R"(": {"content": "<|end|>", "special": true}}})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(encoded(*tokenizer, "Hello<|end|>Hello world"), (Ids{538, next, 538, 579}));
  EXPECT_EQ(tokenizer->decode(Ids{538, next}), "Hello<|end|>");
  EXPECT_EQ(tokenizer->decode(Ids{538, next}, {.skip_special = true}), "Hello");
  EXPECT_FALSE(folder.load(R"({"added_tokens_decoder": {"x": {"content": "<a>"}}})").ok());
  EXPECT_FALSE(folder.load(R"({"added_tokens_decoder": {"5000000": {"content": "<a>"}}})").ok());
}

}  // namespace
}  // namespace hone
