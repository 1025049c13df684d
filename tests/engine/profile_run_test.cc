// A recorded run joined with its plan: counts, bytes and operations are the plan's own, and every breakdown
// adds up to the same.
#include "engine/profile_run.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>

#include "engine/generate.h"
#include "engine/profile_memory.h"
#include "engine_test_support.h"

namespace hone::test {
namespace {

constexpr std::int64_t kPrompt = 11;
constexpr std::int64_t kChunk = 8;
constexpr std::int64_t kDecode = 3;

struct Recorded {
  Recorder recorder;
  std::unique_ptr<Session> session;
  std::vector<std::int32_t> ids;
};

// Two steps of prefill (8 and 3 tokens), then three of decode.
std::unique_ptr<Recorded> record(const std::string& model, bool trace) {
  auto out = std::make_unique<Recorded>();
  EngineOptions options;
  options.context = 64;
  options.threads = 2;
  options.chunk = kChunk;
  auto prepared = Session::prepare(data_path(model), options, &out->recorder);
  EXPECT_TRUE(prepared.ok());
  if (!prepared.ok()) return nullptr;
  out->session = std::move(prepared).value();
  reserve_recording(out->recorder, *out->session, kPrompt, kDecode, trace);
  EXPECT_TRUE(
      out->session->load([&](std::int64_t done, std::int64_t) { out->recorder.add_loaded(done); }).ok());
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < kPrompt; ++i) ids.push_back(3 + 7 * i);
  GenerateOptions generate_options;
  generate_options.max_tokens = kDecode + 1;
  generate_options.ignore_end_tokens = true;
  const auto made = generate(*out->session, ids, 0, generate_options);
  out->recorder.finish();
  EXPECT_TRUE(made.ok());
  if (!made.ok()) return nullptr;
  out->ids = made->ids;
  return out;
}

constexpr MachineLimits kLimits{10e9, 100e9, 400e9, 1e-6};

// A row per model family of the fixtures that launches differ most in.
class ProfileOf : public testing::TestWithParam<const char*> {};

TEST_P(ProfileOf, CountsAndCostsAreThePlansOwn) {
  const std::unique_ptr<Recorded> run = record(GetParam(), false);
  ASSERT_NE(run, nullptr);
  auto made = profile_of(*run->session, run->recorder, kLimits);
  ASSERT_TRUE(made.ok());
  const Profile& profile = *made;
  const Plan& plan = run->session->model().plan;
  EXPECT_EQ(profile.phase(Phase::Prefill).steps, 2);
  EXPECT_EQ(profile.phase(Phase::Prefill).tokens, kPrompt);
  EXPECT_EQ(profile.phase(Phase::Decode).steps, kDecode);
  EXPECT_EQ(profile.phase(Phase::Prefill).all.launches, 2 * plan.launches());
  EXPECT_EQ(profile.phase(Phase::Decode).all.launches, kDecode * plan.launches());
  const Bindings steps[] = {sizes_of_step(1, 8, 8, 1), sizes_of_step(1, 3, 11, 1)};
  std::int64_t moved = 0;
  std::int64_t written = 0;
  std::int64_t operations = 0;
  for (const Bindings& bindings : steps) {
    for (const Step& step : plan.steps) {
      moved += *step.bytes_moved.evaluate(bindings);
      written += *step.bytes_written.evaluate(bindings);
      operations += *step.operations.evaluate(bindings);
    }
  }
  const LaunchSum& prefill = profile.phase(Phase::Prefill).all;
  EXPECT_EQ(prefill.bytes_read + prefill.bytes_written, static_cast<double>(moved));
  EXPECT_EQ(prefill.bytes_written, static_cast<double>(written));
  EXPECT_EQ(prefill.operations, static_cast<double>(operations));
  EXPECT_GT(written, 0);
  EXPECT_GT(moved, written);
}

TEST_P(ProfileOf, EveryBreakdownAddsUpToThePhase) {
  const std::unique_ptr<Recorded> run = record(GetParam(), false);
  ASSERT_NE(run, nullptr);
  auto made = profile_of(*run->session, run->recorder, kLimits);
  ASSERT_TRUE(made.ok());
  const Profile& profile = *made;
  for (const Phase phase : {Phase::Prefill, Phase::Decode}) {
    const LaunchSum& all = profile.phase(phase).all;
    for (const std::vector<LaunchSum>* rows : {&profile.ops, &profile.layers, &profile.kernels}) {
      LaunchSum sum;
      for (const LaunchSum& row : *rows) {
        if (row.phase != phase) continue;
        sum.launches += row.launches;
        sum.seconds += row.seconds;
        sum.bytes_read += row.bytes_read;
        sum.operations += row.operations;
      }
      EXPECT_EQ(sum.launches, all.launches);
      EXPECT_NEAR(sum.seconds, all.seconds, 1e-9);
      EXPECT_EQ(sum.bytes_read, all.bytes_read);
      EXPECT_EQ(sum.operations, all.operations);
    }
    std::int64_t launches = 0;
    for (const LaunchKind& kind : profile.kinds) {
      if (kind.measure.phase == phase) launches += kind.measure.launches;
      EXPECT_EQ(kind.module.find("layers.0"), std::string::npos);
      EXPECT_GT(kind.measure.tiles, 0);
      EXPECT_LE(kind.measure.token_fill, 1);
      EXPECT_FALSE(kind.diagnosis.next.empty());
    }
    EXPECT_EQ(launches, all.launches);
    double seconds = 0;
    for (const Part part : {Part::SetUp, Part::Kernels, Part::Barrier})
      seconds += profile.phase(phase).parts_s[static_cast<std::size_t>(part)];
    EXPECT_NEAR(seconds, all.seconds, 1e-9);
  }
  EXPECT_GT(profile.covered(), 0.8);
  EXPECT_LE(profile.covered(), 1.0);
  EXPECT_TRUE(std::ranges::is_sorted(profile.kinds, std::greater(),
                                     [](const LaunchKind& kind) { return kind.measure.seconds; }));
}

TEST_P(ProfileOf, MemoryInUseStaysWithinWhatIsReserved) {
  const std::unique_ptr<Recorded> run = record(GetParam(), true);
  ASSERT_NE(run, nullptr);
  auto made = profile_of(*run->session, run->recorder, kLimits);
  ASSERT_TRUE(made.ok());
  const Plan& plan = run->session->model().plan;
  ASSERT_EQ(made->memory.size(), 3U);
  for (const RegionUse& use : made->memory) {
    EXPECT_GT(use.peak_bytes, 0) << use.region;
    EXPECT_LE(use.peak_bytes, use.reserved_bytes) << use.region;
    EXPECT_LE(use.current_bytes, use.peak_bytes) << use.region;
  }
  EXPECT_LE(made->state_in_use_bytes, plan.state_bytes);
  auto samples = memory_samples(plan, run->recorder);
  ASSERT_TRUE(samples.ok());
  // One for each weight that was loaded, one for each launch.
  EXPECT_EQ(samples->size(), run->recorder.loaded().size() + 5 * plan.steps.size());
  EXPECT_TRUE(std::ranges::is_sorted(*samples, {}, &MemorySample::at_ns));
  EXPECT_EQ(run->recorder.dropped_zones(), 0);
  EXPECT_EQ(run->recorder.dropped_steps(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, ProfileOf,
                         testing::Values("gguf/llama-256-Q4_1.gguf", "gguf/qwen3moe-Q8_0.gguf"));

// The KV cache of 14 tokens in a context of 64: 2 layers x (k, v) in the plan's own type.
TEST(Profile, TheStateInUseIsThatOfTheTokensSoFar) {
  const std::unique_ptr<Recorded> run = record("gguf/llama-256-Q4_1.gguf", false);
  ASSERT_NE(run, nullptr);
  const Plan& plan = run->session->model().plan;
  std::int64_t whole = 0;
  for (const StateBuffer& buffer : plan.states) whole += buffer.bytes;
  auto used = state_in_use(plan, sizes_of_step(1, 1, 14, 1));
  ASSERT_TRUE(used.ok());
  EXPECT_EQ(*used * 64, whole * 14);
}

TEST(Profile, MeasuringDoesNotChangeTheAnswer) {
  const std::unique_ptr<Recorded> run = record("gguf/llama-256-Q4_1.gguf", true);
  ASSERT_NE(run, nullptr);
  EngineOptions options;
  options.context = 64;
  options.threads = 2;
  options.chunk = kChunk;
  const std::unique_ptr<Session> session = open_session(data_path("gguf/llama-256-Q4_1.gguf"), options);
  ASSERT_NE(session, nullptr);
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < kPrompt; ++i) ids.push_back(3 + 7 * i);
  GenerateOptions generate_options;
  generate_options.max_tokens = kDecode + 1;
  generate_options.ignore_end_tokens = true;
  const auto made = generate(*session, ids, 0, generate_options);
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->ids, run->ids);
}

// Every kernel of panels takes 96 rows a tile, whatever it does beside the product.
TEST(Profile, TokensOfATileAreFoundFromTheKernel) {
  EngineOptions options;
  options.context = 128;
  options.threads = 2;
  Recorder recorder;
  auto session = Session::prepare(data_path("gguf/llama-256-Q4_1.gguf"), options, &recorder);
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->load().ok());
  reserve_recording(recorder, **session, 50, 0, false);
  recorder.begin_phase(Phase::Prefill);
  ASSERT_TRUE((*session)->prefill(std::vector<std::int32_t>(50, 5), 0).ok());
  recorder.finish();
  auto made = profile_of(**session, recorder, kLimits);
  ASSERT_TRUE(made.ok());
  int cut = 0;
  for (const LaunchKind& kind : made->kinds) {
    const bool last_token_only = kind.module == "lm_head";
    if (kind.measure.columns == 0 || last_token_only) {
      EXPECT_TRUE(kind.measure.columns == 0 || kind.measure.token_fill == 1) << kind.module;
      continue;
    }
    ++cut;
    EXPECT_EQ(kind.measure.tile_tokens, 96) << kind.module;
    EXPECT_DOUBLE_EQ(kind.measure.token_fill, 50.0 / 96) << kind.module;
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace hone::test
