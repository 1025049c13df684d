// --no-pack: weights that run from the mapped file give the bits of packed ones.
#include <gtest/gtest.h>

#include "engine_test_support.h"

namespace hone::test {
namespace {

EngineOptions options_of(bool no_pack) {
  EngineOptions options;
  options.no_pack = no_pack;
  options.all_logits = true;
  options.context = 64;
  options.chunk = 64;
  options.threads = 2;
  return options;
}

const Ids kIds{1, 17, 30, 42, 7, 90, 25, 3, 20, 11, 64, 5, 6, 8, 9, 10, 12, 13, 14, 15};

class Mapped : public testing::TestWithParam<const char*> {
 protected:
  std::string path() const { return data_path(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Files, Mapped,
                         testing::Values("gguf/llama-256-Q8_0.gguf", "gguf/llama-256-Q4_1.gguf",
                                         "gguf/llama-256-Q4_K_M.gguf", "gguf/qwen3-256-Q4_0.gguf",
                                         "gguf/qwen3-256-IQ4_NL.gguf", "gguf/qwen2-bias-F16.gguf",
                                         "gguf/llama-256-F32.gguf", "gguf/qwen3moe-Q8_0.gguf",
                                         "models/llama-odd", "models/qwen2-untied-bf16", "models/gemma3"),
                         [](const auto& file) {
                           std::string name = file.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST_P(Mapped, HasTheBitsOfPackedWeights) {
  for (const Level level : {Level::O1, Level::O3}) {
    for (const Isa isa : kIsaLevels) {
      if (isa > detect_isa()) continue;
      EngineOptions options = options_of(false);
      options.level = level;
      options.isa = isa;
      const std::unique_ptr<Session> packed = open_session(path(), options);
      options.no_pack = true;
      const std::unique_ptr<Session> mapped = open_session(path(), options);
      ASSERT_TRUE(packed != nullptr && mapped != nullptr);
      ASSERT_GT(mapped->model().plan.mapped_bytes, 0);
      EXPECT_LT(mapped->model().plan.static_bytes, packed->model().plan.static_bytes);
      EXPECT_EQ(mapped->model().plan.fallbacks(), packed->model().plan.fallbacks());
      for (const std::int64_t chunk : {64, 1})
        EXPECT_TRUE(same_bits(all_logits(*mapped, kIds, chunk), all_logits(*packed, kIds, chunk)))
            << isa_name(isa) << ", O" << static_cast<int>(level) << ", chunks of " << chunk;
    }
  }
}

// Experts are read in panels; all that is not is named.
TEST(MappedExperts, ArePackedAndNamed) {
  const std::unique_ptr<Session> session =
      open_session(data_path("gguf/qwen3moe-Q8_0.gguf"), options_of(true));
  ASSERT_NE(session, nullptr);
  const Plan& plan = session->model().plan;
  ASSERT_FALSE(plan.not_mapped.empty());
  for (const std::string& reason : plan.not_mapped)
    EXPECT_NE(reason.find("experts"), std::string::npos) << reason;
  std::int64_t stacks = 0;
  for (const StaticBuffer& buffer : plan.statics) {
    EXPECT_NE(buffer.type.shape.size(), 2U) << buffer.name;
    stacks += buffer.type.shape.size() == 3 ? 1 : 0;
  }
  EXPECT_EQ(static_cast<std::size_t>(stacks), plan.not_mapped.size());
}

TEST(MappedByRule, OneModule) {
  EngineOptions options = options_of(false);
  const Result<PrecisionRules> rules = parse_precision_rules(
      "* residence=mapped\nlayers.1 residence=packed\nlm_head residence=packed\n", "rules");
  ASSERT_TRUE(rules.ok());
  options.precision_rules = std::make_shared<const PrecisionRules>(*rules);
  const std::string path = data_path("gguf/llama-256-Q8_0.gguf");
  const std::unique_ptr<Session> some = open_session(path, options);
  const std::unique_ptr<Session> none = open_session(path, options_of(false));
  ASSERT_TRUE(some != nullptr && none != nullptr);
  for (const MappedWeight& weight : some->model().plan.mapped)
    EXPECT_TRUE(weight.module.starts_with("layers.0") || weight.module == "embed_tokens") << weight.module;
  EXPECT_EQ(some->model().plan.mapped.size(), 8U);
  EXPECT_TRUE(same_bits(all_logits(*some, kIds, 64), all_logits(*none, kIds, 64)));
}

}  // namespace
}  // namespace hone::test
