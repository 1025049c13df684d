// Checkpoints of every family in Hugging Face's layout, and as GGUF where llama.cpp has the architecture,
// against transformers in f64 (tools/make_model_references.py).
#include <filesystem>
#include <gtest/gtest.h>

#include "expected_model.h"

namespace hone::test {
namespace {

struct Door {
  const char* model;
  const char* config;  // "config.json", "config_v5.json", or the end of MODEL.gguf or MODEL-absorbed.gguf
};

bool is_gguf(const Door& door) {
  return std::string(door.config).ends_with(".gguf");
}

// A folder in which the config asked for is config.json; removed with all it holds.
class OpenDoor {
 public:
  explicit OpenDoor(const Door& door) {
    const std::filesystem::path source = data_path(std::string("models/") + door.model);
    if (is_gguf(door)) {
      path_ = source / (std::string(door.model) + door.config);
      return;
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-model-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_;
    for (const auto& entry : std::filesystem::directory_iterator(source)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("model")) std::filesystem::create_symlink(entry.path(), folder_ / name);
    }
    std::filesystem::create_symlink(source / door.config, folder_ / "config.json");
  }
  ~OpenDoor() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  OpenDoor(const OpenDoor&) = delete;
  OpenDoor& operator=(const OpenDoor&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

EngineOptions options_of(Level level) {
  EngineOptions options;
  options.level = level;
  options.all_logits = true;
  options.context = 48;
  options.chunk = 48;
  options.threads = 2;
  options.hidden_outputs = true;
  return options;
}

class ReferenceModel : public testing::TestWithParam<Door> {
 protected:
  void SetUp() override {
    expected_ = read_expected(data_path(std::string("models/") + GetParam().model + "/expected.safetensors"));
    ASSERT_EQ(expected_.ids.size(), 2U);
  }

  std::unique_ptr<Session> open(const EngineOptions& options) const {
    return open_session(door_.path(), options);
  }

  // Keys and values in f16 (the default for weights of 16 bits), one rounding of 2^-11 in each of the 2L
  // branches, or the activations of products in bf16, one of 2^-9.
  static double tolerance(const Session& session, double largest) {
    const double f32 = f32_tolerance(session.model().config, largest);
    const PrecisionPolicy& policy = session.model().precision;
    if (policy.kv == DType::F32) return f32;
    return 8 * (policy.bf16_activations ? 0x1p-9 : 0x1p-11) *
           std::sqrt(2.0 * static_cast<double>(session.model().config.layers)) * largest;
  }

  Expected expected_;
  OpenDoor door_{GetParam()};
};

TEST_P(ReferenceModel, HasNoWarnings) {
  const std::unique_ptr<Session> session = open(options_of(Level::O3));
  ASSERT_NE(session, nullptr);
  for (const std::string& warning : session->model().config.warnings) ADD_FAILURE() << warning;
}

TEST_P(ReferenceModel, LogitsAndGreedyTokens) {
  for (const Level level : {Level::O0, Level::O2, Level::O3}) {
    EngineOptions options = options_of(level);
    options.verify_passes = true;
    const std::unique_ptr<Session> session = open(options);
    ASSERT_NE(session, nullptr);
    const double bound = tolerance(*session, expected_.largest);
    for (std::size_t i = 0; i < expected_.ids.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "level O" << static_cast<int>(level) << ", sequence " << i);
      const double error =
          largest_difference(all_logits(*session, expected_.ids[i], 48), expected_.logits[i]);
      RecordProperty("error_of_tolerance", std::to_string(error / bound));
      EXPECT_LE(error, bound);
      expect_greedy(*session, expected_, i, 2 * bound);
    }
  }
}

TEST_P(ReferenceModel, HiddenStates) {
  for (const Level level : {Level::O0, Level::O3}) {
    const std::unique_ptr<Session> session = open(options_of(level));
    ASSERT_NE(session, nullptr);
    all_logits(*session, expected_.ids[0], 48);
    EXPECT_EQ(static_cast<std::int64_t>(expected_.hidden.size()), session->model().config.layers + 2);
    for (const auto& [name, values] : expected_.hidden) {
      const Result<std::span<const float>> hidden = session->output(name);
      ASSERT_TRUE(hidden.ok()) << describe(hidden.error());
      const double bound = tolerance(*session, largest_magnitude(values));
      EXPECT_LE(largest_difference(*hidden, values), bound) << name << ", level O" << static_cast<int>(level);
    }
  }
}

// Steps of one token behind a prompt: with a table that depends on the length, what transformers gives with
// its cache; else the same as computing everything anew.
TEST_P(ReferenceModel, GreedyTokensWithTheCache) {
  const bool apart = !expected_.greedy_cached.empty();
  for (const Level level : {Level::O0, Level::O3}) {
    const std::unique_ptr<Session> session = open(options_of(level));
    ASSERT_NE(session, nullptr);
    const double undecided = 2 * tolerance(*session, expected_.largest);
    for (std::size_t i = 0; i < 2; ++i) {
      const Ids& greedy = apart ? expected_.greedy_cached[i] : expected_.greedy[i];
      const std::vector<float>& margin = apart ? expected_.margin_cached[i] : expected_.margin[i];
      if (greedy.empty()) continue;
      Result<std::span<const float>> logits = session->prefill(expected_.ids[i], 0);
      for (std::size_t t = 0; t < greedy.size(); ++t) {
        ASSERT_TRUE(logits.ok()) << describe(logits.error());
        if (static_cast<double>(margin[t]) > undecided) {
          EXPECT_EQ(arg_max(*logits), greedy[t]) << "step " << t << ", level O" << static_cast<int>(level);
        }
        const Ids one{greedy[t]};
        const auto past = static_cast<std::int64_t>(expected_.ids[i].size() + t);
        const Session::Row last{0, 0};
        logits = session->step({&one, 1}, {&past, 1}, {&last, 1});
      }
    }
  }
}

TEST_P(ReferenceModel, BitsDoNotDependOnThreadsChunksOrOtherRows) {
  const std::vector<Ids> others{{5, 6, 7, 8, 9}, Ids(30, 11)};
  for (const Level level : {Level::O0, Level::O3}) {
    EngineOptions options = options_of(level);
    options.batch = 3;
    const std::unique_ptr<Session> session = open(options);
    ASSERT_NE(session, nullptr);
    const std::vector<float> whole = all_logits(*session, expected_.ids[0], 48);
    for (const std::int64_t chunk : {1, 3}) {
      EXPECT_TRUE(same_bits(all_logits(*session, expected_.ids[0], chunk), whole))
          << "chunks of " << chunk << ", level O" << static_cast<int>(level);
    }
    for (const std::size_t slot : {0U, 2U}) {
      for (const std::int64_t chunk : {48, 4}) {
        EXPECT_TRUE(same_bits(all_logits(*session, expected_.ids[0], chunk, slot, others), whole))
            << "row " << slot << ", chunks of " << chunk << ", level O" << static_cast<int>(level);
      }
    }
    for (const std::int64_t threads : {1, 3}) {
      options.threads = threads;
      const std::unique_ptr<Session> other = open(options);
      ASSERT_NE(other, nullptr);
      EXPECT_TRUE(same_bits(all_logits(*other, expected_.ids[0], 48), whole))
          << threads << " threads, level O" << static_cast<int>(level);
    }
  }
}

TEST_P(ReferenceModel, BitsDoNotDependOnTheInstructionSet) {
  for (const Level level : {Level::O0, Level::O3}) {
    std::vector<float> portable;
    for (const Isa isa : kIsaLevels) {
      if (isa > detect_isa()) continue;
      EngineOptions options = options_of(level);
      options.isa = isa;
      std::unique_ptr<Session> session = open(options);
      ASSERT_NE(session, nullptr);
      // Of weights of bf16 only --bits portable has the bits of other levels.
      if (session->model().precision.bf16_activations) {
        options.portable_bits = true;
        session = open(options);
        ASSERT_NE(session, nullptr);
      }
      const std::vector<float> logits = all_logits(*session, expected_.ids[0], 48);
      if (portable.empty()) portable = logits;
      EXPECT_TRUE(same_bits(logits, portable)) << isa_name(isa) << ", level O" << static_cast<int>(level);
    }
  }
}

constexpr Door kDoors[] = {
    {"llama-mha-tied", "config.json"},
    {"llama-gqa", "config.json"},
    {"llama-odd", "config.json"},
    {"llama-rope-llama3", "config.json"},
    {"llama-rope-linear", "config.json"},
    {"llama-rope-yarn", "config.json"},
    {"llama-rope-dynamic", "config.json"},
    {"qwen2", "config.json"},
    {"qwen2-untied-bf16", "config.json"},
    {"qwen3", "config.json"},
    {"chatglm3", "config.json"},
    {"mistral", "config.json"},
    {"qwen2-window", "config.json"},
    {"glm4", "config.json"},
    {"glm", "config.json"},
    {"phi3", "config.json"},
    {"phi3-longrope", "config.json"},
    {"gemma2", "config.json"},
    {"gemma2-scalar", "config.json"},
    {"gemma3", "config.json"},
    {"olmo2", "config.json"},
    {"glm4", ".gguf"},
    {"phi3-longrope", ".gguf"},
    {"gemma2", ".gguf"},
    {"gemma3", ".gguf"},
    {"olmo2", ".gguf"},
    {"qwen3-moe", "config.json"},
    {"qwen2-moe", "config.json"},
    {"deepseek-v2-lite", "config.json"},
    {"deepseek-v2", "config.json"},
    {"deepseek-v3", "config.json"},
    {"deepseek-v2-lite", ".gguf"},
    {"deepseek-v3", ".gguf"},
    {"deepseek-v2-lite", "-absorbed.gguf"},
    {"deepseek-v3", "-absorbed.gguf"},
};

// The other form of the same config must give the same bits.
class BothForms : public testing::TestWithParam<const char*> {};

TEST_P(BothForms, GiveTheSameBits) {
  const Expected expected =
      read_expected(data_path(std::string("models/") + GetParam() + "/expected.safetensors"));
  std::vector<float> first;
  for (const char* config : {"config.json", "config_v5.json"}) {
    const OpenDoor door({GetParam(), config});
    const std::unique_ptr<Session> session = open_session(door.path(), options_of(Level::O3));
    ASSERT_NE(session, nullptr) << config;
    for (const std::string& warning : session->model().config.warnings) ADD_FAILURE() << warning;
    const std::vector<float> logits = all_logits(*session, expected.ids[0], 48);
    if (first.empty()) first = logits;
    EXPECT_TRUE(same_bits(logits, first)) << config;
  }
}

constexpr const char* kInBothForms[] = {"llama-mha-tied",
                                        "llama-gqa",
                                        "llama-odd",
                                        "llama-rope-llama3",
                                        "llama-rope-linear",
                                        "llama-rope-yarn",
                                        "qwen2",
                                        "qwen2-untied-bf16",
                                        "qwen3",
                                        "mistral",
                                        "llama-rope-dynamic",
                                        "glm4",
                                        "glm",
                                        "phi3",
                                        "phi3-longrope",
                                        "gemma2",
                                        "gemma3",
                                        "olmo2",
                                        "qwen2-window",
                                        "gemma2-scalar",
                                        "qwen3-moe",
                                        "qwen2-moe",
                                        "deepseek-v2-lite",
                                        "deepseek-v2",
                                        "deepseek-v3"};

std::string plain(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string door_name(const testing::TestParamInfo<Door>& info) {
  if (!is_gguf(info.param)) return plain(info.param.model);
  return plain(info.param.model) + (info.param.config == std::string(".gguf") ? "_gguf" : "_absorbed_gguf");
}

std::string model_name(const testing::TestParamInfo<const char*>& info) {
  return plain(info.param);
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceModel, testing::ValuesIn(kDoors), door_name);
INSTANTIATE_TEST_SUITE_P(Models, BothForms, testing::ValuesIn(kInBothForms), model_name);

}  // namespace
}  // namespace hone::test
