#include "tokens/tokenizer.h"

#include <gtest/gtest.h>

#include "json_lines.h"
#include "tokens/utf8.h"
#include "vocab.h"

namespace hone {
namespace {

using Ids = std::vector<std::int32_t>;
using Json = nlohmann::ordered_json;

TEST(Tokenizer, SmolLm2CorpusIsExact) {
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  const auto corpus = read_json_lines(HONE_TEST_DATA "/tokenizer/corpus.jsonl");
  const auto expected = read_json_lines(HONE_TEST_DATA "/tokenizer/smollm2.jsonl");
  ASSERT_EQ(corpus.size(), expected.size());
  ASSERT_EQ(corpus.size(), 585U);
  int differences = 0;
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    const std::string id = corpus[i]["id"];
    const std::string text = corpus[i]["text"];
    ASSERT_EQ(expected[i]["id"], id);
    const Ids ids = expected[i]["ids"].get<Ids>();
    const Ids with_special =
        expected[i].contains("ids_special") ? expected[i]["ids_special"].get<Ids>() : ids;
    const std::string decoded = expected[i].value("decoded", text);
    const std::string skipped = expected[i].value("decoded_skip", decoded);
    const auto plain = tokenizer.encode(text, {.add_special = false});
    const auto special = tokenizer.encode(text);
    ASSERT_TRUE(plain.ok() && special.ok()) << id;
    EXPECT_EQ(*plain, ids) << id;
    EXPECT_EQ(*special, with_special) << id;
    EXPECT_EQ(to_valid_utf8(tokenizer.decode(ids)), decoded) << id;
    EXPECT_EQ(to_valid_utf8(tokenizer.decode(ids, {.skip_special = true})), skipped) << id;
    if (*plain != ids || to_valid_utf8(tokenizer.decode(ids)) != decoded) ++differences;
  }
  EXPECT_EQ(differences, 0) << "of " << corpus.size();
}

TEST(Tokenizer, SmolLm2PromptsAreExact) {
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  const Json expected = Json::parse(read_text(HONE_TEST_DATA "/smollm2/expected.json"));
  ASSERT_EQ(expected["prompts"].size(), 8U);
  for (const auto& prompt : expected["prompts"]) {
    const auto ids = tokenizer.encode(prompt["text"].get<std::string>());
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(*ids, prompt["ids"].get<Ids>()) << prompt["name"];
    EXPECT_EQ(to_valid_utf8(tokenizer.decode(prompt["greedy"].get<Ids>())),
              prompt["greedy_text"].get<std::string>());
  }
}

TEST(Tokenizer, SmallVocabulariesAreExact) {
  for (const std::string name : {"llama-256", "qwen3-256"}) {
    const Tokenizer& tokenizer = vocab_tokenizer(name);
    EXPECT_EQ(tokenizer.pre_tokenizer_name(), name == "llama-256" ? "gpt-2" : "qwen2");
    const Json cases =
        Json::parse(read_text(HONE_TEST_DATA "/tokenizer/" + name + ".tokenizer.expected.json"));
    ASSERT_GE(cases.size(), 8U);
    for (const auto& each : cases) {
      const auto ids = tokenizer.encode(each["text"].get<std::string>());
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*ids, each["ids"].get<Ids>()) << name << ": " << each["text"];
      EXPECT_EQ(tokenizer.decode(*ids), each["decoded"].get<std::string>());
    }
  }
}

TEST(Tokenizer, TablesAreSmall) {
  const auto tokenizer = Tokenizer::from_metadata(vocab_checkpoint("smollm2").metadata);
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_LT(tokenizer->heap_bytes(), 4 << 20);
}

// Quadratic time would be hours for 1 MiB: the time-out of ctest fails this test. Sanitizers look at memory,
// a short text shows it.
TEST(Tokenizer, LongWordsAreNotQuadratic) {
  const std::size_t bytes = HONE_TEST_SANITIZED ? 1U << 15U : 1U << 20U;
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  for (const char* unit : {"a", " ", "ab", "\n ", "=", "1", "\xC3\xA9"}) {
    std::string text;
    while (text.size() < bytes) text += unit;
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    EXPECT_EQ(tokenizer.decode(*ids), text);
  }
}

TEST(Tokenizer, InvalidUtf8BytesAreWordsOfTheirOwn) {
  const Tokenizer& tokenizer = vocab_tokenizer("llama-256");  // has all 256 bytes
  for (const std::string text : {"\xFF",
                                 "a\x80"
                                 "b",
                                 "\xC3", "\xE2\x82", "\xF0\x9F\x98 x", "\xED\xA0\x80", "\xC0\xAF",
                                 "\xF5\x80\x80\x80", "ok \xE9t\xE9 <|im_end|>\xFE"}) {
    const auto ids = tokenizer.encode(text);
    ASSERT_TRUE(ids.ok());
    EXPECT_EQ(tokenizer.decode(*ids), text);
  }
  const auto ids = tokenizer.encode("the\xFFthe");
  const auto word = tokenizer.encode("the");
  const auto byte = tokenizer.encode("\xFF");
  ASSERT_TRUE(ids.ok() && word.ok() && byte.ok());
  Ids joined = *word;
  joined.insert(joined.end(), byte->begin(), byte->end());
  joined.insert(joined.end(), word->begin(), word->end());
  EXPECT_EQ(*ids, joined);
  EXPECT_EQ(byte->size(), 1U);
}

TEST(Tokenizer, BytesWithoutATokenVanish) {
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  const auto ids = tokenizer.encode(
      "a\x04\x06"
      "b");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(tokenizer.decode(*ids), "ab");
  EXPECT_EQ(tokenizer.encode("\x04\xC0\xF5")->size(), 0U);
}

TEST(Tokenizer, SpecialTokensAreRecognisedOnRequest) {
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  const std::string text = "x<|im_end|><|im_start|>user";
  const auto with = tokenizer.encode(text);
  const auto without = tokenizer.encode(text, {.parse_special = false});
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(std::count(with->begin(), with->end(), 2), 1);
  EXPECT_EQ(std::count(without->begin(), without->end(), 2), 0);
  EXPECT_EQ(tokenizer.decode(*with), text);
  EXPECT_EQ(tokenizer.decode(*without), text);
  EXPECT_EQ(tokenizer.decode(*with, {.skip_special = true}), "xuser");
  EXPECT_EQ(tokenizer.special_token_id("<|im_start|>"), 1);
  EXPECT_EQ(tokenizer.special_token_id("user"), std::nullopt);
}

TEST(Tokenizer, RolesAndTexts) {
  const Tokenizer& tokenizer = vocab_tokenizer("smollm2");
  EXPECT_EQ(tokenizer.vocab_size(), 49152);
  EXPECT_EQ(tokenizer.special_tokens().bos, 1);
  EXPECT_EQ(tokenizer.special_tokens().eos, 2);
  EXPECT_EQ(tokenizer.special_tokens().unknown, 0);
  EXPECT_EQ(tokenizer.special_tokens().padding, 2);
  EXPECT_EQ(tokenizer.bos_text(), "<|im_start|>");
  EXPECT_EQ(tokenizer.pre_tokenizer_name(), "smollm");
  EXPECT_TRUE(tokenizer.is_end_of_generation(2));
  EXPECT_TRUE(tokenizer.is_end_of_generation(0));
  EXPECT_FALSE(tokenizer.is_end_of_generation(1));
  EXPECT_FALSE(tokenizer.is_end_of_generation(-1));
  EXPECT_FALSE(tokenizer.adds_bos());
  EXPECT_EQ(tokenizer.token_type(2), TokenType::Control);
  EXPECT_EQ(tokenizer.token_type(49152), std::nullopt);
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.decode(Ids{-1, 49152}), "");
  EXPECT_TRUE(tokenizer.chat_template().starts_with("{% for message in messages %}"));
}

}  // namespace
}  // namespace hone
