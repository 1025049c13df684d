// The session and the generation loop: one compile for every length, and the edges of what a caller may ask.
#include "engine/session.h"

#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

#include "engine/generate.h"
#include "engine/likelihood.h"
#include "engine/memory_statement.h"
#include "engine/planned_cost.h"
#include "engine_test_support.h"
#include "file/open.h"
#include "tokens/load_tokenizer.h"
#include "tokens/sampler.h"

namespace hone::test {
namespace {

const std::string kModel = "gguf/llama-256-Q4_1.gguf";

EngineOptions small_options() {
  EngineOptions options;
  options.context = 64;
  options.threads = 2;
  return options;
}

Result<std::span<const float>> one_step(Session& session, const Ids& ids, std::int64_t past) {
  const Session::Row last{0, static_cast<std::int64_t>(ids.size()) - 1};
  return session.step({&ids, 1}, {&past, 1}, {&last, 1});
}

TEST(Session, OneCompileServesEveryLength) {
  const std::int64_t before = compile_count();
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  std::vector<std::int64_t> lengths(64);
  std::iota(lengths.begin(), lengths.end(), 1);
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(7));
  for (const std::int64_t length : lengths) {
    Ids ids(static_cast<std::size_t>(length));
    std::iota(ids.begin(), ids.end(), 17);
    const Result<std::span<const float>> logits = session->prefill(ids, 0);
    ASSERT_TRUE(logits.ok()) << length << ": " << describe(logits.error());
    EXPECT_EQ(static_cast<std::int64_t>(logits->size()), session->model().config.vocabulary);
    for (const float logit : *logits) ASSERT_TRUE(std::isfinite(logit)) << length;
  }
  EXPECT_EQ(compile_count() - before, 1);
}

// Offsets are formulas over those of the values below; in this graph they double with each of them unless cut
// short.
TEST(Session, OffsetsAreShortFormulas) {
  EngineOptions options = small_options();
  options.level = Level::O0;
  const std::unique_ptr<Session> session = open_session(data_path("gguf/qwen3-256-Q4_0.gguf"), options);
  ASSERT_NE(session, nullptr);
  for (const ValueLife& life : session->model().plan.lives) {
    EXPECT_LE(life.offset.to_string().size(), 512U) << life.value;
  }
}

TEST(Session, TheLengthOfAPrefillCountsWhatCameBefore) {
  // Beyond 12 tokens the rotary table is that of the length.
  const std::unique_ptr<Session> session =
      open_session(data_path("models/llama-rope-dynamic"), small_options());
  ASSERT_NE(session, nullptr);
  const Ids first{1, 2, 3, 4, 5, 6, 7, 8};
  const Ids second{9, 10, 11, 12, 13, 14, 15};
  std::vector<std::vector<float>> logits;
  for (const bool prefill : {true, false}) {
    ASSERT_TRUE(session->prefill(first, 0).ok());
    const Result<std::span<const float>> row =
        prefill ? session->prefill(second, 8) : one_step(*session, second, 8);
    ASSERT_TRUE(row.ok()) << describe(row.error());
    logits.emplace_back(row->begin(), row->end());
  }
  EXPECT_EQ(logits[0], logits[1]);
}

// One prompt of 20 tokens, three sequences that decode, one that rests: 23 tokens are computed, not 5 * 20.
TEST(Session, AMixedStepComputesItsTokensAlone) {
  EngineOptions options = small_options();
  options.batch = 5;
  options.hidden_outputs = true;
  const std::vector<Ids> ids{Ids(20, 3), {4}, {}, {5}, {6}};
  const std::vector<std::int64_t> past(5, 0);
  const std::vector<Session::Row> rows{{0, 19}, {1, 0}, {3, 0}, {4, 0}};
  for (const bool flat : {true, false}) {
    if (!flat) options.disabled_passes = {"flatten-tokens"};
    const std::unique_ptr<Session> session = open_session(data_path(kModel), options);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->step(ids, past, rows).ok());
    const Result<std::span<const float>> hidden = session->output("hidden_0");
    ASSERT_TRUE(hidden.ok());
    EXPECT_EQ(std::ssize(*hidden), (flat ? 23 : 100) * session->model().config.dim);
    // What the plan says of it: all but the rows of logits goes by the tokens.
    Bindings sizes = sizes_of_step(5, 20, 20, 4);
    const Result<PlannedCost> padded = planned_cost(session->model().plan, sizes);
    sizes.set('N', 23);
    const Result<PlannedCost> real = planned_cost(session->model().plan, sizes);
    ASSERT_TRUE(padded.ok() && real.ok());
    EXPECT_EQ(real->operations < 0.3 * padded->operations, flat);
  }
}

TEST(Session, AFullContextIsAnError) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  const Result<std::span<const float>> long_prompt = session->prefill(Ids(65, 1), 0);
  ASSERT_FALSE(long_prompt.ok());
  EXPECT_EQ(long_prompt.error().code, ErrorCode::BadInput);
  EXPECT_EQ(long_prompt.error().fault, Fault::User);
  EXPECT_EQ(long_prompt.error().expected, "at most 64 tokens");
  ASSERT_TRUE(session->prefill(Ids(64, 1), 0).ok());
  const Result<std::span<const float>> one_more = one_step(*session, {1}, 64);
  ASSERT_FALSE(one_more.ok());
  EXPECT_EQ(one_more.error().actual, "65 tokens");
  EXPECT_TRUE(one_step(*session, {1}, 63).ok()) << "an error must leave the session usable";
}

TEST(Session, AnIdOutsideTheVocabularyIsAnError) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  ASSERT_EQ(session->model().config.vocabulary, 512);
  for (const std::int32_t id : {-1, 512, 2'000'000'000}) {
    const Result<std::span<const float>> logits = session->prefill(Ids{1, id}, 0);
    ASSERT_FALSE(logits.ok()) << id;
    EXPECT_EQ(logits.error().code, ErrorCode::BadInput);
    EXPECT_EQ(logits.error().expected, "0 to 511");
    EXPECT_EQ(logits.error().actual, std::to_string(id));
  }
  EXPECT_TRUE(session->prefill(Ids{0, 511}, 0).ok());
}

TEST(Session, AnEmptyPromptIsAnError) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->prefill({}, 0).error().code, ErrorCode::BadInput);
  EXPECT_EQ(one_step(*session, {}, 0).error().code, ErrorCode::BadInput);
  EXPECT_EQ(generate(*session, {}, 0, {}).error().code, ErrorCode::BadInput);
  const Ids one{1};
  EXPECT_EQ(likelihood(*session, one).error().code, ErrorCode::BadInput);
}

TEST(Session, AContextBeyondTheModelsIsAnError) {
  EngineOptions options = small_options();
  options.context = 1'000'000'000;
  const Result<std::unique_ptr<Session>> session = Session::open(data_path(kModel), options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::Usage);
  EXPECT_EQ(session.error().where, "--ctx");
}

TEST(Session, OverTheBudgetIsAnErrorThatNamesTheContextThatFits) {
  EngineOptions options = small_options();
  options.batch =
      64;  // with one sequence the buffer for loading is larger than the cache, whatever the context
  const std::unique_ptr<Session> session = open_session(data_path(kModel), options);
  ASSERT_NE(session, nullptr);
  options.memory = session->memory().total_bytes - 1;
  const Result<std::unique_ptr<Session>> refused = Session::open(data_path(kModel), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::DoesNotFit);
  EXPECT_NE(refused.error().expected.find(std::to_string(options.memory + 1)), std::string::npos);
  EXPECT_NE(refused.error().actual.find(std::to_string(options.memory)), std::string::npos);
  EXPECT_NE(refused.error().next_step.find("--ctx "), std::string::npos) << refused.error().next_step;
  options.memory += 1;
  EXPECT_TRUE(Session::open(data_path(kModel), options).ok());
}

// A budget of exactly what a context or a batch takes is enough for it, and one byte less is not.
TEST(Session, WhatFitsIsExactToTheByte) {
  EngineOptions options = small_options();
  options.batch = 64;  // as above
  const std::unique_ptr<Session> session = open_session(data_path(kModel), options);
  ASSERT_NE(session, nullptr);
  const Result<Checkpoint> checkpoint = open_checkpoint(data_path(kModel));
  ASSERT_TRUE(checkpoint.ok());
  const Result<TokenizerMemory> tokenizer = tokenizer_memory(*checkpoint);
  ASSERT_TRUE(tokenizer.ok());
  const std::int64_t need = session->memory().total_bytes;
  const Result<Fit> exact = what_fits(*checkpoint, options, need, *tokenizer);
  ASSERT_TRUE(exact.ok()) << describe(exact.error());
  EXPECT_EQ(exact->max_context, 64);
  EXPECT_EQ(exact->max_batch, 64);
  const Result<Fit> less = what_fits(*checkpoint, options, need - 1, *tokenizer);
  ASSERT_TRUE(less.ok()) << describe(less.error());
  EXPECT_EQ(less->max_context, 63);
  EXPECT_EQ(less->max_batch, 63);
}

TEST(Session, TheStatementNamesAllThatIsAllocated) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  std::map<std::string, std::int64_t> bytes;
  for (const MemoryItem& item : session->memory().items) bytes[item.name] = item.bytes;
  const Plan& plan = session->model().plan;
  EXPECT_EQ(bytes["weights and constants"], plan.static_bytes);
  EXPECT_EQ(bytes["KV cache"], plan.state_bytes);
  EXPECT_EQ(bytes["activations"], plan.dynamic_bytes);
  EXPECT_EQ(bytes["kernel workspace"], plan.workspace_bytes);
  EXPECT_EQ(bytes["sampler"], Sampler::predicted_heap_bytes(512));
  for (const char* item : {"tokenizer tables", "header", "plan and addresses", "expressions",
                           "allocator pads", "stacks", "worker stacks"}) {
    EXPECT_GT(bytes[item], 0) << item;
  }
}

TEST(Session, EachLayersMemoryAddsUp) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  const MemoryStatement& memory = session->memory();
  EXPECT_EQ(memory.static_bytes + memory.dynamic_bytes + memory.workspace_bytes, memory.total_bytes);
  std::int64_t items = 0;
  for (const MemoryItem& item : memory.items) items += item.bytes;
  EXPECT_EQ(items, memory.total_bytes);
  std::int64_t state = 0;
  for (const LayerMemory& layer : memory.layers) state += layer.state_bytes;
  EXPECT_EQ(state, session->model().plan.state_bytes);
  // f16 keys and values of 2 kv heads of 64, 64 tokens, in each of 2 layers.
  for (const LayerMemory& layer : memory.layers) {
    EXPECT_EQ(layer.state_bytes, layer.module.starts_with("layers.") ? 2 * 2 * 64 * 64 * 2 : 0)
        << layer.module;
  }
  EXPECT_EQ(state, 2 * 2 * 2 * 64 * 64 * 2);
}

TEST(Generate, IsTheArgMaxOfEachStep) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  const Ids prompt{1, 2, 3, 4, 5};
  GenerateOptions options;
  options.max_tokens = 12;
  options.sampler.temperature = 0;
  options.ignore_end_tokens = true;
  const Result<Generation> made = generate(*session, prompt, 0, options);
  ASSERT_TRUE(made.ok()) << describe(made.error());
  ASSERT_EQ(made->ids.size(), 12U);
  EXPECT_EQ(made->finish, Finish::Length);
  EXPECT_EQ(made->prompt_tokens, 5);
  EXPECT_EQ(made->launches_per_token, session->model().plan.launches());
  Ids so_far = prompt;
  for (const std::int32_t id : made->ids) {
    const Result<std::span<const float>> logits = session->prefill(so_far, 0);
    ASSERT_TRUE(logits.ok());
    EXPECT_EQ(arg_max(*logits), id);
    so_far.push_back(id);
  }
}

TEST(Generate, EndsWhereTheContextEnds) {
  const std::unique_ptr<Session> session = open_session(data_path(kModel), small_options());
  ASSERT_NE(session, nullptr);
  GenerateOptions options;
  options.max_tokens = 100;
  options.sampler.temperature = 0;
  options.ignore_end_tokens = true;
  const Result<Generation> made = generate(*session, Ids(60, 9), 0, options);
  ASSERT_TRUE(made.ok()) << describe(made.error());
  // Four steps fill the context; the last of them gives a fifth id, which needs no place.
  EXPECT_EQ(made->ids.size(), 5U);
  EXPECT_EQ(made->finish, Finish::Length);
}

// The likelihood of a text is the sum over its steps, however it is cut.
TEST(Likelihood, IsTheSumOverTheLogits) {
  EngineOptions options = small_options();
  options.all_logits = true;
  options.chunk = 7;
  const std::unique_ptr<Session> session = open_session(data_path(kModel), options);
  ASSERT_NE(session, nullptr);
  const Ids ids{7, 300, 12, 511, 0, 45, 46, 47, 48, 200, 201, 202, 203, 204, 205, 206};
  const Result<Likelihood> sum = likelihood(*session, ids);
  ASSERT_TRUE(sum.ok()) << describe(sum.error());
  EXPECT_EQ(sum->tokens, 15);
  const std::vector<float> logits = all_logits(*session, ids, 7);
  double expected = 0;
  for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
    const std::span<const float> row = row_of(logits, t, 512);
    double total = 0;
    for (const float logit : row) total += std::exp(static_cast<double>(logit));
    expected += std::log(total) - static_cast<double>(row[static_cast<std::size_t>(ids[t + 1])]);
  }
  EXPECT_NEAR(sum->nll_sum, expected, 1e-9 * expected);
}

// Windows are texts of their own that share a token: the whole costs what they cost one after the other.
TEST(Likelihood, ALongTextIsCutIntoWindows) {
  EngineOptions options = small_options();
  options.all_logits = true;
  options.context = 6;
  options.chunk = 4;
  const std::unique_ptr<Session> session = open_session(data_path(kModel), options);
  ASSERT_NE(session, nullptr);
  const Ids ids{7, 300, 12, 511, 0, 45, 46, 47, 48, 200, 201, 202, 203, 204, 205, 206};
  const Result<Likelihood> whole = likelihood(*session, ids);
  ASSERT_TRUE(whole.ok()) << describe(whole.error());
  EXPECT_EQ(whole->windows, 3);
  EXPECT_EQ(whole->tokens, 15);
  double sum = 0;
  for (const auto& [first, count] : {std::pair{0, 7}, {6, 7}, {12, 4}}) {
    const Result<Likelihood> part = likelihood(*session, std::span(ids).subspan(first, count));
    ASSERT_TRUE(part.ok());
    EXPECT_EQ(part->windows, 1);
    sum += part->nll_sum;
  }
  EXPECT_NEAR(whole->nll_sum, sum, 1e-12 * sum);
}

TEST(Likelihood, TheTextIsOnePassWhereKeysDependOnTheLength) {
  EngineOptions options = small_options();
  options.all_logits = true;
  const Ids ids{7, 30, 12, 311, 0, 45, 46, 47, 48, 200, 201, 202, 203, 204, 205, 206, 9, 8};
  std::vector<double> sums;
  for (const std::int64_t chunk : {5, 64}) {
    options.chunk = chunk;
    const std::unique_ptr<Session> session = open_session(data_path("models/llama-rope-dynamic"), options);
    ASSERT_NE(session, nullptr);
    const Result<Likelihood> sum = likelihood(*session, ids);
    ASSERT_TRUE(sum.ok()) << describe(sum.error());
    sums.push_back(sum->nll_sum);
  }
  EXPECT_NEAR(sums[0], sums[1], 1e-5 * sums[1]);
}

}  // namespace
}  // namespace hone::test
