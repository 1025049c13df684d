// --precision: how far fast, balanced and exact are from O0, and that balanced has one set of bits.
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

#include "engine/precision_effects.h"
#include "expected_model.h"
#include "file/open.h"

namespace hone::test {
namespace {

EngineOptions options_of(Precision precision, std::int64_t context = 64) {
  EngineOptions options;
  options.precision = precision;
  options.all_logits = true;
  options.context = context;
  options.chunk = context;
  options.threads = 2;
  options.verify_passes = true;
  return options;
}

std::vector<float> logits_of(const std::string& path, const EngineOptions& options, const Ids& ids) {
  const std::unique_ptr<Session> session = open_session(path, options);
  return session == nullptr ? std::vector<float>{} : all_logits(*session, ids, options.chunk);
}

struct Distances {
  double fast = 0, balanced = 0, exact = 0;
};

// |logits - O0's| / |O0's|, Frobenius norms.
Distances distances(const std::string& path, const Ids& ids, std::int64_t context) {
  EngineOptions primitive = options_of(Precision::Fast, context);
  primitive.level = Level::O0;
  const std::vector<float> expected = logits_of(path, primitive, ids);
  const auto distance = [&](Precision precision) {
    return relative_distance(logits_of(path, options_of(precision, context), ids), expected);
  };
  return {distance(Precision::Fast), distance(Precision::Balanced), distance(Precision::Exact)};
}

void expect_ordered(const Distances& d, const std::string& name) {
  testing::Test::RecordProperty(name + "_fast", std::to_string(d.fast));
  testing::Test::RecordProperty(name + "_balanced", std::to_string(d.balanced));
  testing::Test::RecordProperty(name + "_exact", std::to_string(d.exact));
  std::printf("%-24s fast %.6f, balanced %.6f, exact %.8f\n", name.c_str(), d.fast, d.balanced, d.exact);
  EXPECT_LE(d.balanced, d.fast / 2) << name;
  // f32 throughout: rounding of 2^-24 over sums of some hundred.
  EXPECT_LE(d.exact, 1e-5) << name;
  EXPECT_GT(d.fast, 1e-3) << name << ": activations are not int8";
}

// What the type of the KV cache does alone: everything else in f32. f16 rounds by 2^-11 of a value at most,
// q8_0 by 1/254 of the largest of 32.
void expect_cache_errors(const std::string& path, const Ids& ids, const char* name, int layers) {
  const auto with = [&](DType kv) {
    EngineOptions options = options_of(Precision::Exact);
    options.kv = kv;
    return logits_of(path, options, ids);
  };
  const std::vector<float> f32 = with(DType::F32);
  const double f16 = relative_distance(with(DType::F16), f32);
  const double q8_0 = relative_distance(with(DType::Q8_0), f32);
  std::printf("%-24s cache of f16 %.6f, of q8_0 %.6f\n", name, f16, q8_0);
  EXPECT_GT(f16, 0);
  EXPECT_GT(q8_0, 4 * f16) << "the cache is not q8_0";
  // As for int8 activations (src/engine/verify_model.cc): independent errors of 0.02 in 2L branches.
  EXPECT_LE(q8_0, 0.02 * std::sqrt(2.0 * layers));
}

class PrecisionModel : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return data_path(std::string("gguf/") + GetParam() + ".gguf"); }
  Ids ids() const {
    return read_expected(data_path(std::string("gguf/") + GetParam() + ".expected.safetensors")).ids[0];
  }
};
INSTANTIATE_TEST_SUITE_P(Files, PrecisionModel,
                         testing::Values("llama-256-Q4_1", "llama-256-Q8_0", "qwen3-256-Q4_0",
                                         "qwen3moe-Q8_0"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(PrecisionModel, BalancedHasHalfTheErrorOfFast) {
  expect_ordered(distances(path(), ids(), 64), GetParam());
}

TEST_P(PrecisionModel, BalancedHasOneSetOfBits) {
  const EngineOptions options = options_of(Precision::Balanced);
  const std::unique_ptr<Session> session = open_session(path(), options);
  ASSERT_NE(session, nullptr);
  const std::vector<float> whole = all_logits(*session, ids(), 64);
  for (const std::int64_t chunk : {1, 2, 3, 7})
    EXPECT_TRUE(same_bits(all_logits(*session, ids(), chunk), whole)) << "chunks of " << chunk;
  for (const std::int64_t threads : {1, 3}) {
    EngineOptions other = options;
    other.threads = threads;
    EXPECT_TRUE(same_bits(logits_of(path(), other, ids()), whole)) << threads << " threads";
  }
  for (const Isa isa : kIsaLevels) {
    EngineOptions other = options;
    other.isa = isa;
    if (isa > detect_isa()) continue;
    EXPECT_TRUE(same_bits(logits_of(path(), other, ids()), whole)) << isa_name(isa);
  }
  EngineOptions several = options;
  several.batch = 3;
  const std::unique_ptr<Session> batch = open_session(path(), several);
  ASSERT_NE(batch, nullptr);
  const std::vector<Ids> others{{5, 6, 7, 8, 9}, Ids(30, 11)};
  for (const std::size_t slot : {0U, 1U, 2U})
    EXPECT_TRUE(same_bits(all_logits(*batch, ids(), 4, slot, others), whole)) << "row " << slot;
}

TEST_P(PrecisionModel, NoLaunchFallsBackToAReferenceKernel) {
  for (const Precision precision : {Precision::Fast, Precision::Balanced, Precision::Exact}) {
    const std::unique_ptr<Session> session = open_session(path(), options_of(precision));
    ASSERT_NE(session, nullptr);
    EXPECT_EQ(session->model().plan.fallback_line(), "");
  }
}

TEST_P(PrecisionModel, TheErrorOfEachCache) {
  expect_cache_errors(path(), ids(), GetParam(), 2);
}

// Below O2 a cast to f32 stands before whatever reads the cache.
TEST_P(PrecisionModel, ACacheOfBlocksWorksAtEveryLevel) {
  const auto with = [&](Level level) {
    EngineOptions options = options_of(Precision::Exact);
    options.kv = DType::Q8_0;
    options.level = level;
    return logits_of(path(), options, ids());
  };
  const std::vector<float> primitive = with(Level::O0);
  ASSERT_FALSE(primitive.empty());
  for (const Level level : {Level::O1, Level::O2, Level::O3}) {
    const std::vector<float> logits = with(level);
    ASSERT_EQ(logits.size(), primitive.size());
    // A value that other rounding turns to the next of 127 steps moves the logits by less than the cache
    // does.
    EXPECT_LE(relative_distance(logits, primitive), 0.02 * std::sqrt(2.0 * 2));
  }
}

TEST_P(PrecisionModel, ACacheOfBlocksHasOneSetOfBits) {
  EngineOptions options = options_of(Precision::Fast);
  options.kv = DType::Q8_0;
  options.batch = 2;
  const std::unique_ptr<Session> session = open_session(path(), options);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->model().plan.fallback_line(), "");
  const std::vector<float> whole = all_logits(*session, ids(), 64);
  for (const std::int64_t chunk : {1, 3})
    EXPECT_TRUE(same_bits(all_logits(*session, ids(), chunk), whole)) << "chunks of " << chunk;
  const std::vector<Ids> others{Ids(30, 11)};
  EXPECT_TRUE(same_bits(all_logits(*session, ids(), 4, 1, others), whole)) << "row 1";
  for (const Isa isa : kIsaLevels) {
    EngineOptions other = options;
    other.isa = isa;
    other.threads = 3;
    if (isa > detect_isa()) continue;
    EXPECT_TRUE(same_bits(logits_of(path(), other, ids()), whole)) << isa_name(isa);
  }
}

// Products of bf16, which are the default with AMX tiles alone, asked for on every level.
TEST(Bf16Activations, HaveOneSetOfBitsOnEveryLevel) {
  const std::string path = data_path("models/qwen2-untied-bf16");
  const Ids ids = read_expected(path + "/expected.safetensors").ids[0];
  const Result<PrecisionRules> rules = parse_precision_rules("* activations=bf16\n", "rules");
  ASSERT_TRUE(rules.ok());
  EngineOptions options = options_of(Precision::Fast);
  options.precision_rules = std::make_shared<const PrecisionRules>(*rules);
  options.batch = 2;
  const std::unique_ptr<Session> session = open_session(path, options);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->model().plan.fallback_line(), "");
  const std::vector<float> whole = all_logits(*session, ids, 64);
  for (const std::int64_t chunk : {1, 2, 3, 7})
    EXPECT_TRUE(same_bits(all_logits(*session, ids, chunk), whole)) << "chunks of " << chunk;
  const std::vector<Ids> others{Ids(30, 11)};
  EXPECT_TRUE(same_bits(all_logits(*session, ids, 4, 1, others), whole)) << "row 1";
  for (const Isa isa : kIsaLevels) {
    EngineOptions other = options;
    other.isa = isa;
    other.threads = 3;
    if (isa > detect_isa()) continue;
    EXPECT_TRUE(same_bits(logits_of(path, other, ids), whole)) << isa_name(isa);
  }
  EngineOptions exact = options_of(Precision::Exact);
  const std::vector<float> f32 = logits_of(path, exact, ids);
  const double error = relative_distance(whole, f32);
  std::printf("%-24s activations of bf16 %.6f\n", "qwen2-untied-bf16", error);
  EXPECT_GT(error, 1e-5) << "the activations are not bf16";
  // As in src/engine/verify_model.cc: eight units of roundoff in each of 2L branches.
  EXPECT_LE(error, 8 * 0x1p-9 * std::sqrt(2.0 * static_cast<double>(session->model().config.layers)));
}

// The stages of a file of rules end in what the run has.
TEST(PrecisionStages, EachRuleIsPlanned) {
  const std::string path = data_path("gguf/llama-256-Q8_0.gguf");
  const Result<Checkpoint> checkpoint = open_checkpoint(path);
  ASSERT_TRUE(checkpoint.ok());
  const Result<TokenizerMemory> tokenizer = tokenizer_memory(*checkpoint);
  ASSERT_TRUE(tokenizer.ok());
  const Result<PrecisionRules> rules = parse_precision_rules(
      "layers.0.attn kv=f32\nlayers.*.mlp activations=q8a2\nlm_head activations=f32\n", "rules");
  ASSERT_TRUE(rules.ok());
  EngineOptions options = options_of(Precision::Fast, 512);
  options.precision_rules = std::make_shared<const PrecisionRules>(*rules);
  const Result<CompiledModel> model = compile(*checkpoint, options);
  ASSERT_TRUE(model.ok()) << describe(model.error());
  const Result<std::vector<PrecisionStage>> stages =
      precision_stages(*checkpoint, options, model->plan, *tokenizer);
  ASSERT_TRUE(stages.ok()) << describe(stages.error());
  ASSERT_EQ(stages->size(), 4U);
  const auto at = [&](std::size_t i) { return (*stages)[i].work; };
  // Keys and values of one layer, 512 positions of 2 heads of 64, two bytes more each; the plan's text
  // changes by some.
  EXPECT_NEAR(static_cast<double>(at(1).memory_bytes - at(0).memory_bytes), 2 * 512 * 2 * 64 * 2, 4096);
  EXPECT_GT(at(2).int8_operations, at(1).int8_operations);
  EXPECT_EQ(at(2).f32_operations, at(1).f32_operations);
  EXPECT_GT(at(3).f32_operations, at(2).f32_operations);
  const std::unique_ptr<Session> session = open_session(path, options);
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->memory().total_bytes, at(3).memory_bytes);
  EXPECT_EQ(session->model().plan.launches(), at(3).launches);
}

// A trained model. O0 runs on reference kernels, so few tokens.
TEST(PrecisionOfSmolLm2, BalancedHasHalfTheErrorOfFast) {
  const char* path = std::getenv("HONE_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "HONE_TEST_MODEL names no model";
  const Ids ids{504, 3575, 282, 4649, 314, 7042, 30, 378, 1535, 618, 253, 4618};
  expect_ordered(distances(path, ids, 16), "SmolLM2");
}

TEST(PrecisionOfSmolLm2, TheErrorOfEachCache) {
  const char* path = std::getenv("HONE_TEST_MODEL");
  if (path == nullptr) GTEST_SKIP() << "HONE_TEST_MODEL names no model";
  expect_cache_errors(path, Ids{504, 3575, 282, 4649, 314, 7042, 30, 378, 1535, 618, 253, 4618}, "SmolLM2",
                      30);
}

}  // namespace
}  // namespace hone::test
