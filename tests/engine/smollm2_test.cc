// A trained model, SmolLM2-135M-Instruct in Q4_1, against an f64 forward on its dequantised weights. The file
// is named by the environment variable HONE_TEST_MODEL; without it the tests skip.
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/likelihood.h"
#include "engine_test_support.h"
#include "tokens/chat.h"

namespace hone::test {
namespace {

using Json = nlohmann::ordered_json;

struct Prompt {
  std::string name;
  std::string text;
  Json messages;  // null: the text is no conversation
  Ids ids;
  Ids greedy;                   // 48 ids: arg max of each step, end tokens ignored
  std::vector<double> margins;  // [48] largest logit - second largest
  Ids top_ids;                  // [32] of the last prompt position, largest first
  std::vector<double> top_logits;
};

const char* model_path() {
  return std::getenv("HONE_TEST_MODEL");
}

std::vector<Prompt> read_prompts() {
  std::vector<Prompt> out;
  std::ifstream in(data_path("smollm2/expected.json"));
  const Json json = Json::parse(in, nullptr, false);
  const Result<Checkpoint> numbers = read_safetensors(data_path("smollm2/expected.safetensors"));
  if (json.is_discarded() || !numbers.ok()) {
    ADD_FAILURE() << "the expected values cannot be read";
    return out;
  }
  for (const Json& entry : json["prompts"]) {
    Prompt& prompt = out.emplace_back();
    prompt.name = entry["name"].get<std::string>();
    prompt.text = entry["text"].get<std::string>();
    prompt.messages = entry.contains("messages") ? entry["messages"] : Json();
    prompt.ids = entry["ids"].get<Ids>();
    prompt.greedy = entry["greedy"].get<Ids>();
    prompt.margins = tensor_values<double>(*numbers, prompt.name + ".margins");
    prompt.top_ids = to_ids(tensor_values<std::int64_t>(*numbers, prompt.name + ".top_ids"));
    prompt.top_logits = tensor_values<double>(*numbers, prompt.name + ".top_logits");
  }
  return out;
}

// What one prompt says of a level, over all of its tokens in one step: the prompt, then the reference's
// continuation.
struct Outcome {
  double top_error = 0;  // largest difference in the 32 largest logits of the last prompt position
  int decided = 0;       // steps whose margin is above `undecided`
  int wrong = 0;         // of those: where the arg max is another
};

Outcome run_prompt(Session& session, const Prompt& prompt, double undecided) {
  Ids fed = prompt.ids;
  fed.insert(fed.end(), prompt.greedy.begin(), prompt.greedy.end() - 1);
  std::vector<Session::Row> rows;
  for (std::size_t i = prompt.ids.size() - 1; i < fed.size(); ++i)
    rows.push_back({0, static_cast<std::int64_t>(i)});
  const std::int64_t past = 0;
  const Result<std::span<const float>> logits = session.step({&fed, 1}, {&past, 1}, rows);
  Outcome out;
  if (!logits.ok()) {
    ADD_FAILURE() << describe(logits.error());
    return out;
  }
  const auto vocabulary = static_cast<std::size_t>(session.model().config.vocabulary);
  const std::span<const float> last = row_of(*logits, 0, vocabulary);
  for (std::size_t i = 0; i < prompt.top_ids.size(); ++i) {
    const double ours = static_cast<double>(last[static_cast<std::size_t>(prompt.top_ids[i])]);
    out.top_error = std::max(out.top_error, std::abs(ours - prompt.top_logits[i]));
  }
  for (std::size_t t = 0; t < prompt.greedy.size(); ++t) {
    if (prompt.margins[t] <= undecided) continue;
    ++out.decided;
    if (arg_max(row_of(*logits, t, vocabulary)) != prompt.greedy[t]) ++out.wrong;
  }
  return out;
}

// Sessions are opened once per level and shared by the tests of this program.
class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    if (model_path() == nullptr) {
      GTEST_SKIP() << "HONE_TEST_MODEL does not name SmolLM2-135M-Instruct.Q4_1.gguf";
    }
  }
  static void TearDownTestSuite() {
    for (std::unique_ptr<Session>& session : sessions_) session.reset();
  }

  static EngineOptions options_of(Level level) {
    EngineOptions options;
    options.level = level;
    options.context = 1366;
    options.chunk = 512;
    options.batch = 1;
    options.all_logits = true;
    return options;
  }
  static Session& session(Level level) {
    std::unique_ptr<Session>& slot = sessions_[level == Level::O0 ? 0 : 1];
    if (slot == nullptr) slot = open_session(model_path(), options_of(level));
    return *slot;
  }
  static Ids essay() {
    const Result<Checkpoint> file = read_safetensors(data_path("smollm2/essay.safetensors"));
    if (!file.ok()) {
      ADD_FAILURE() << describe(file.error());
      return {};
    }
    return to_ids(tensor_values<std::int64_t>(*file, "ids"));
  }
  // Of the first `count` tokens' predictions.
  static double essay_nll(std::size_t count) {
    const Result<Checkpoint> file = read_safetensors(data_path("smollm2/essay.safetensors"));
    if (!file.ok()) return 0;
    const std::vector<double> nll = tensor_values<double>(*file, "nll");
    double sum = 0;
    for (std::size_t i = 0; i < std::min(count, nll.size()); ++i) sum += nll[i];
    return sum;
  }

 private:
  static inline std::unique_ptr<Session> sessions_[2];
};

TEST_F(SmolLm2, TextsBecomeTheReferencesIds) {
  const Tokenizer* tokenizer = session(Level::O3).tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  int conversations = 0;
  for (const Prompt& prompt : read_prompts()) {
    std::string text = prompt.text;
    if (!prompt.messages.is_null()) {
      ++conversations;
      const Result<std::string> rendered =
          render_chat(tokenizer->chat_template(), prompt.messages, nullptr, special_token_texts(*tokenizer));
      ASSERT_TRUE(rendered.ok()) << describe(rendered.error());
      EXPECT_EQ(*rendered, prompt.text);
      text = *rendered;
    }
    const Result<Ids> ids = tokenizer->encode(text, {.parse_special = true, .add_special = false});
    ASSERT_TRUE(ids.ok()) << describe(ids.error());
    EXPECT_EQ(*ids, prompt.ids) << prompt.name;
  }
  EXPECT_EQ(conversations, 2);
}

TEST_F(SmolLm2, LogitsInF32AreWithinTheRoundingOfTheirSums) {
  const std::vector<Prompt> prompts = read_prompts();
  ASSERT_EQ(prompts.size(), 8U);
  for (const Prompt& prompt : prompts) {
    double largest = 0;
    for (const double logit : prompt.top_logits) largest = std::max(largest, std::abs(logit));
    const double tolerance = f32_tolerance(1536, 30, largest);
    const Outcome outcome = run_prompt(session(Level::O0), prompt, 2 * tolerance);
    EXPECT_LE(outcome.top_error, tolerance) << prompt.name;
    EXPECT_EQ(outcome.wrong, 0) << prompt.name;
    EXPECT_GE(outcome.decided, 47) << prompt.name;
  }
}

// int8 activations. The largest difference is a property of the arithmetic, the same on every machine: any
// other number than 0.41 or less is a change of it.
TEST_F(SmolLm2, LogitsAtTheDefaultPrecision) {
  const std::vector<Prompt> prompts = read_prompts();
  ASSERT_EQ(prompts.size(), 8U);
  double largest = 0;
  int decided = 0;
  for (const Prompt& prompt : prompts) {
    const Outcome outcome = run_prompt(session(Level::O3), prompt, 0.5);
    EXPECT_LE(outcome.top_error, 0.41) << prompt.name;
    EXPECT_EQ(outcome.wrong, 0) << prompt.name;
    largest = std::max(largest, outcome.top_error);
    decided += outcome.decided;
  }
  RecordProperty("largest_difference", std::to_string(largest));
  EXPECT_GT(largest, 0.02) << "activations are not int8";
  EXPECT_GE(decided, 200) << "of 384 steps";
}

TEST_F(SmolLm2, LikelihoodOfTheEssayAtTheDefaultPrecision) {
  const Ids ids = essay();
  ASSERT_EQ(ids.size(), 1366U);
  const Result<Likelihood> found = likelihood(session(Level::O3), ids);
  ASSERT_TRUE(found.ok()) << describe(found.error());
  EXPECT_EQ(found->tokens, 1365);
  EXPECT_NEAR(found->nll_sum, essay_nll(1365), 1e-3 * essay_nll(1365));
}

TEST_F(SmolLm2, LikelihoodOfTheEssaysBeginInF32) {
  const Ids ids = essay();
  ASSERT_EQ(ids.size(), 1366U);
  const Result<Likelihood> found = likelihood(session(Level::O0), std::span(ids).first(256));
  ASSERT_TRUE(found.ok()) << describe(found.error());
  EXPECT_EQ(found->tokens, 255);
  EXPECT_NEAR(found->nll_sum, essay_nll(255), 1e-5 * essay_nll(255));
}

// Run only where the long tests run (ctest label `long`).
TEST_F(SmolLm2, DISABLED_LikelihoodOfTheWholeEssayInF32) {
  const Ids ids = essay();
  ASSERT_EQ(ids.size(), 1366U);
  const Result<Likelihood> found = likelihood(session(Level::O0), ids);
  ASSERT_TRUE(found.ok()) << describe(found.error());
  EXPECT_NEAR(found->nll_sum, essay_nll(1365), 1e-5 * essay_nll(1365));
}

class SmolLm2Bits : public SmolLm2 {
 protected:
  static std::unique_ptr<Session> open_with(std::int64_t threads, std::int64_t batch) {
    EngineOptions options = options_of(Level::O3);
    options.context = 64;
    options.chunk = 64;
    options.threads = threads;
    options.batch = batch;
    return open_session(model_path(), options);
  }
  static Ids forty() {
    const Ids ids = essay();
    return {ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(40, std::ssize(ids))};
  }
};

TEST_F(SmolLm2Bits, DoNotDependOnThreads) {
  std::vector<float> first;
  for (const std::int64_t threads : {1, 2, 3, 4}) {
    const std::unique_ptr<Session> session = open_with(threads, 1);
    ASSERT_NE(session, nullptr);
    const std::vector<float> logits = all_logits(*session, forty(), 64);
    if (first.empty()) first = logits;
    EXPECT_TRUE(same_bits(logits, first)) << threads << " threads";
  }
}

TEST_F(SmolLm2Bits, DoNotDependOnChunks) {
  const std::unique_ptr<Session> session = open_with(0, 1);
  ASSERT_NE(session, nullptr);
  const std::vector<float> whole = all_logits(*session, forty(), 64);
  for (const std::int64_t chunk : {1, 2, 3, 7}) {
    EXPECT_TRUE(same_bits(all_logits(*session, forty(), chunk), whole)) << "chunks of " << chunk;
  }
}

TEST_F(SmolLm2Bits, DoNotDependOnTheOtherRows) {
  const std::unique_ptr<Session> session = open_with(0, 3);
  ASSERT_NE(session, nullptr);
  const std::vector<float> alone = all_logits(*session, forty(), 64);
  const std::vector<Ids> others{{504, 3575, 282, 4649, 314}, Ids(60, 198)};
  for (const std::size_t slot : {0U, 1U, 2U}) {
    EXPECT_TRUE(same_bits(all_logits(*session, forty(), 64, slot, others), alone)) << "row " << slot;
  }
}

}  // namespace
}  // namespace hone::test
