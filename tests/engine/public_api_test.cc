#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdexcept>

#include "hone/hone.h"

namespace hone::api {
namespace {

const std::string kModel = std::string(HONE_TEST_DATA) + "/gguf/llama-256-Q8_0.gguf";

Engine open_engine(const Options& options = {}) {
  Outcome<Engine> opened = Engine::open(kModel, options);
  if (const Error* error = std::get_if<Error>(&opened)) throw std::runtime_error(error->message);
  return std::move(*std::get_if<Engine>(&opened));
}

TEST(PublicApi, TheFirstGreedyTokenIsTheLargestLogitOfThePrompt) {
  Engine engine = open_engine();
  const auto ids = engine.tokenize("The sun");
  ASSERT_TRUE(std::holds_alternative<std::vector<std::int32_t>>(ids));
  const auto logits = engine.logits(*std::get_if<0>(&ids));
  ASSERT_TRUE(std::holds_alternative<std::vector<float>>(logits));
  const std::vector<float>& row = *std::get_if<0>(&logits);
  EXPECT_EQ(row.size(), 512U);
  const auto largest = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());

  std::string streamed;
  const auto answer = engine.generate("The sun", {.max_tokens = 8, .raw = true}, [&](std::string_view text) {
    streamed += text;
    return true;
  });
  ASSERT_TRUE(std::holds_alternative<Answer>(answer));
  const Answer& made = *std::get_if<0>(&answer);
  ASSERT_EQ(made.ids.size(), 8U);
  EXPECT_EQ(made.ids[0], largest);
  EXPECT_EQ(made.text, streamed);
  EXPECT_FALSE(made.stopped);
}

TEST(PublicApi, EachCallStartsAnewAndTheCallbackEndsAnAnswer) {
  Engine engine = open_engine();
  const auto first = engine.generate("The sun", {.max_tokens = 8, .raw = true});
  const auto cut =
      engine.generate("The sun", {.max_tokens = 8, .raw = true}, [](std::string_view) { return false; });
  const auto again = engine.generate("The sun", {.max_tokens = 8, .raw = true});
  ASSERT_TRUE(std::holds_alternative<Answer>(first));
  ASSERT_TRUE(std::holds_alternative<Answer>(cut));
  ASSERT_TRUE(std::holds_alternative<Answer>(again));
  EXPECT_EQ(std::get_if<0>(&first)->ids, std::get_if<0>(&again)->ids);
  EXPECT_TRUE(std::get_if<0>(&cut)->stopped);
  EXPECT_LT(std::get_if<0>(&cut)->ids.size(), 8U);
}

TEST(PublicApi, AStopTextEndsAnAnswerAndIsNoPartOfIt) {
  Engine engine = open_engine();
  const auto whole = engine.generate("The sun", {.max_tokens = 12, .raw = true});
  ASSERT_TRUE(std::holds_alternative<Answer>(whole));
  const std::string text = std::get_if<0>(&whole)->text;
  ASSERT_GE(text.size(), 4U);
  const std::string stop = text.substr(text.size() / 2, 2);
  const auto cut = engine.generate("The sun", {.max_tokens = 12, .raw = true, .stop = {stop}});
  ASSERT_TRUE(std::holds_alternative<Answer>(cut));
  EXPECT_EQ(std::get_if<0>(&cut)->text, text.substr(0, text.find(stop)));
  EXPECT_TRUE(std::get_if<0>(&cut)->stopped);
}

TEST(PublicApi, TheMemoryBudgetIsHard) {
  const auto opened = Engine::open(kModel, {.memory_bytes = 1000});
  ASSERT_TRUE(std::holds_alternative<Error>(opened));
  EXPECT_EQ(std::get_if<Error>(&opened)->code, "does_not_fit");
}

TEST(PublicApi, AnErrorSaysWhoseFaultAndWhere) {
  const auto missing = Engine::open("no-such-file.gguf");
  ASSERT_TRUE(std::holds_alternative<Error>(missing));
  EXPECT_EQ(std::get_if<Error>(&missing)->code, "bad_file");
  EXPECT_NE(std::get_if<Error>(&missing)->where.find("no-such-file.gguf"), std::string::npos);

  const auto level = Engine::open(kModel, {.level = 4});
  ASSERT_TRUE(std::holds_alternative<Error>(level));
  EXPECT_EQ(std::get_if<Error>(&level)->code, "usage");
  EXPECT_EQ(std::get_if<Error>(&level)->actual, "4");

  Engine engine = open_engine();
  const std::vector<std::int32_t> outside{512};
  const auto logits = engine.logits(outside);
  ASSERT_TRUE(std::holds_alternative<Error>(logits));
  EXPECT_EQ(std::get_if<Error>(&logits)->fault, "user");
}

TEST(PublicApi, ATemplateMayAskForTheDate) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "hone-public-api-date";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(HONE_TEST_DATA "/models/llama-gqa", folder);
  std::ofstream(folder / "tokenizer.json")
      << R"({"model": {"type": "BPE", "vocab": {"2": 0, "0": 1, "a": 2}, "merges": []}})";
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"chat_template": "{{ strftime_now('%Y') }}{{ messages[0].content }}"})";
  Outcome<Engine> opened = Engine::open(folder.string());
  std::filesystem::remove_all(folder);
  Engine* engine = std::get_if<Engine>(&opened);
  ASSERT_NE(engine, nullptr) << std::get_if<Error>(&opened)->message;
  const auto answer = engine->generate("a", {.max_tokens = 2});
  ASSERT_TRUE(std::holds_alternative<Answer>(answer)) << std::get_if<Error>(&answer)->message;
}

TEST(PublicApi, NothingThrowsAcrossIt) {
  Engine engine = open_engine();
  const auto thrown = engine.generate(
      "The sun", {.max_tokens = 8, .raw = true},
      [](std::string_view) -> bool { throw std::runtime_error("the caller's own exception"); });
  ASSERT_TRUE(std::holds_alternative<Error>(thrown));
  EXPECT_EQ(std::get_if<Error>(&thrown)->message, "the caller's own exception");

  const Engine other = std::move(engine);
  const auto moved = engine.tokenize("The sun");  // NOLINT(bugprone-use-after-move): what is tested
  ASSERT_TRUE(std::holds_alternative<Error>(moved));
  EXPECT_EQ(std::get_if<Error>(&moved)->code, "usage");
  EXPECT_TRUE(std::holds_alternative<std::vector<std::int32_t>>(other.tokenize("The sun")));
}

}  // namespace
}  // namespace hone::api
