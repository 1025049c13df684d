// Whole models of two layers and random weights: logits against an f64 forward on the dequantised weights.
#include <gtest/gtest.h>

#include "expected_model.h"

namespace hone::test {
namespace {

Expected read_tiny(const std::string& name) {
  return read_expected(data_path("gguf/" + name + ".expected.safetensors"));
}

EngineOptions options_of(Level level) {
  EngineOptions options;
  options.level = level;
  options.all_logits = true;
  options.context = 64;
  options.chunk = 64;
  options.threads = 2;
  options.verify_passes = true;
  return options;
}

std::unique_ptr<Session> open_tiny(const std::string& name, const EngineOptions& options) {
  return open_session(data_path("gguf/" + name + ".gguf"), options);
}

class TinyModel : public testing::TestWithParam<const char*> {
 protected:
  static bool named(std::string_view part) {
    return std::string_view(GetParam()).find(part) != std::string_view::npos;
  }
  // True if an int8 kernel reads some of the weights: those of all formats but the plain ones.
  bool int8() const { return !named("F32") && !named("F16"); }
  // True if it reads those of the logits only, in two terms: Q3_K and IQ4_NL have no int8 kernel.
  bool int8_logits_only() const { return named("Q3_K") || named("IQ4_NL"); }
};

TEST_P(TinyModel, LogitsInF32AreWithinTheRoundingOfTheirSums) {
  const Expected expected = read_tiny(GetParam());
  for (const Level level : {Level::O0, Level::O1, Level::O2}) {
    const std::unique_ptr<Session> session = open_tiny(GetParam(), options_of(level));
    ASSERT_NE(session, nullptr);
    const double tolerance = f32_tolerance(session->model().config, expected.largest);
    for (std::size_t i = 0; i < expected.ids.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "level O" << static_cast<int>(level) << ", sequence " << i);
      const double error = largest_difference(all_logits(*session, expected.ids[i], 64), expected.logits[i]);
      RecordProperty("error_of_tolerance", std::to_string(error / tolerance));
      EXPECT_LE(error, tolerance);
      expect_greedy(*session, expected, i, 2 * tolerance);
    }
  }
}

// int8 activations: each block of 32 is off by up to 1/254 of its largest value, which moves logits of random
// weights by 2 to 3 percent in the Frobenius norm. f16 keys and values: one rounding of 2^-11 in each of the
// 2L branches.
TEST_P(TinyModel, LogitsAtTheDefaultPrecision) {
  const Expected expected = read_tiny(GetParam());
  const std::unique_ptr<Session> session = open_tiny(GetParam(), options_of(Level::O3));
  ASSERT_NE(session, nullptr);
  const double branches = std::sqrt(2.0 * static_cast<double>(session->model().config.layers));
  for (std::size_t i = 0; i < expected.ids.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "sequence " << i);
    const std::vector<float> logits = all_logits(*session, expected.ids[i], 64);
    const double error = largest_difference(logits, expected.logits[i]);
    if (int8()) {
      const double distance = relative_distance(logits, expected.logits[i]);
      EXPECT_LE(distance, 0.04);
      EXPECT_GT(distance, int8_logits_only() ? 1e-5 : 1e-3) << "activations are not int8";
      // Four standard deviations of the difference of two logits.
      const double rms =
          frobenius(expected.logits[i]) / std::sqrt(static_cast<double>(expected.logits[i].size()));
      expect_greedy(*session, expected, i, 4 * std::sqrt(2.0) * 0.04 * rms);
    } else {
      const double tolerance = 8 * 0x1p-11 * branches * expected.largest;
      EXPECT_LE(error, tolerance);
      expect_greedy(*session, expected, i, 2 * tolerance);
    }
  }
}

// Order of additions and tiles do not depend on who runs them, nor on what else a step holds.
class TinyBits : public TinyModel {
 protected:
  void SetUp() override {
    ids_ = read_tiny(GetParam()).ids[0];
    ASSERT_EQ(ids_.size(), 17U);
  }
  Ids ids_;
};

TEST_P(TinyBits, DoNotDependOnThreads) {
  for (const Level level : {Level::O0, Level::O3}) {
    std::vector<float> first;
    for (const std::int64_t threads : {1, 2, 3, 4}) {
      EngineOptions options = options_of(level);
      options.threads = threads;
      const std::unique_ptr<Session> session = open_tiny(GetParam(), options);
      ASSERT_NE(session, nullptr);
      const std::vector<float> logits = all_logits(*session, ids_, 64);
      if (first.empty()) first = logits;
      EXPECT_TRUE(same_bits(logits, first)) << threads << " threads, level O" << static_cast<int>(level);
    }
  }
}

TEST_P(TinyBits, DoNotDependOnChunks) {
  for (const Level level : {Level::O0, Level::O3}) {
    const std::unique_ptr<Session> session = open_tiny(GetParam(), options_of(level));
    ASSERT_NE(session, nullptr);
    const std::vector<float> whole = all_logits(*session, ids_, 64);
    for (const std::int64_t chunk : {1, 2, 3, 7}) {
      EXPECT_TRUE(same_bits(all_logits(*session, ids_, chunk), whole))
          << "chunks of " << chunk << ", level O" << static_cast<int>(level);
    }
  }
}

TEST_P(TinyBits, PrefillCutsAsThePlanSays) {
  std::vector<float> whole;
  for (const std::int64_t chunk : {64, 1, 2, 3, 7}) {
    EngineOptions options = options_of(Level::O3);
    options.chunk = chunk;
    options.all_logits = false;
    const std::unique_ptr<Session> session = open_tiny(GetParam(), options);
    ASSERT_NE(session, nullptr);
    const Result<std::span<const float>> logits = session->prefill(ids_, 0);
    ASSERT_TRUE(logits.ok()) << describe(logits.error());
    if (whole.empty()) whole.assign(logits->begin(), logits->end());
    EXPECT_TRUE(same_bits(*logits, whole)) << "chunks of " << chunk;
  }
}

TEST_P(TinyBits, DoNotDependOnTheOtherRows) {
  const std::vector<Ids> others{{5, 6, 7, 8, 9}, Ids(30, 11)};
  for (const Level level : {Level::O0, Level::O3}) {
    EngineOptions options = options_of(level);
    options.batch = 3;
    const std::unique_ptr<Session> session = open_tiny(GetParam(), options);
    ASSERT_NE(session, nullptr);
    const std::vector<float> alone = all_logits(*session, ids_, 64);
    for (const std::size_t slot : {0U, 1U, 2U}) {
      for (const std::int64_t chunk : {64, 4}) {
        EXPECT_TRUE(same_bits(all_logits(*session, ids_, chunk, slot, others), alone))
            << "row " << slot << ", chunks of " << chunk << ", level O" << static_cast<int>(level);
      }
    }
  }
}

TEST_P(TinyBits, DoNotDependOnTheInstructionSet) {
  for (const Level level : {Level::O0, Level::O3}) {
    std::vector<float> portable;
    for (const Isa isa : kIsaLevels) {
      if (isa > detect_isa()) continue;
      EngineOptions options = options_of(level);
      options.isa = isa;
      const std::unique_ptr<Session> session = open_tiny(GetParam(), options);
      ASSERT_NE(session, nullptr);
      const std::vector<float> logits = all_logits(*session, ids_, 64);
      if (portable.empty()) portable = logits;
      EXPECT_TRUE(same_bits(logits, portable)) << isa_name(isa) << ", level O" << static_cast<int>(level);
    }
  }
  if (detect_isa() < Isa::Avx512) GTEST_SKIP() << "this machine has no " << isa_name(Isa::Avx512);
}

// What was run before leaves no trace: rows beyond a sequence's last position are never read.
TEST_P(TinyBits, DoNotDependOnWhatTheCacheHeld) {
  const std::unique_ptr<Session> session = open_tiny(GetParam(), options_of(Level::O3));
  ASSERT_NE(session, nullptr);
  const std::vector<float> fresh = all_logits(*session, ids_, 64);
  all_logits(*session, Ids(64, 3), 64);
  EXPECT_TRUE(same_bits(all_logits(*session, ids_, 64), fresh));
}

constexpr const char* kModels[] = {
    "llama-256-Q4_1",   "llama-256-Q8_0",   "qwen3-256-Q4_0",   "qwen2-bias-F16",   "llama-rope-freqs-F16",
    "qwen3-256-Q2_K",   "qwen3-256-Q3_K_S", "qwen3-256-Q4_K_M", "qwen3-256-Q5_K_M", "qwen3-256-Q6_K",
    "qwen3-256-IQ4_NL", "qwen3moe-F16",     "qwen3moe-Q8_0"};

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, TinyModel, testing::ValuesIn(kModels), test_name);
INSTANTIATE_TEST_SUITE_P(Files, TinyBits, testing::ValuesIn(kModels), test_name);

}  // namespace
}  // namespace hone::test
