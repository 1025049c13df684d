// hone run as a process of its own: what it said it would take against what it took, and a budget one byte
// too small.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/wait.h>

namespace hone::test {
namespace {

using Json = nlohmann::json;

struct Ran {
  int exit_code = -1;
  Json json;
};

Ran run_model(const std::string& model, const std::string& flags) {
  const std::string command =
      std::string(HONE_BINARY) + " run '" + model + "' -n 4 --json " + flags + " 2>/dev/null";
  Ran out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::string text;
  std::array<char, 4096> piece;
  while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe))
    text.append(piece.data(), count);
  const int status = ::pclose(pipe);
  out.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  out.json = Json::parse(text, nullptr, false);
  return out;
}

class Memory : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (std::getenv("HONE_TEST_MODEL") == nullptr)
      GTEST_SKIP() << "HONE_TEST_MODEL does not name a model file";
  }

  static Ran run(const std::string& flags) {
    return run_model(std::getenv("HONE_TEST_MODEL"), "--ids 504,3575,282,4649,314 " + flags);
  }
};

TEST_P(Memory, ThePeakIsWithinFivePercentBelowThePrediction) {
  const Ran ran = run("--ctx " + std::to_string(GetParam()));
  ASSERT_EQ(ran.exit_code, 0);
  ASSERT_TRUE(ran.json.is_object());
  const auto predicted = ran.json["predicted_bytes"].get<double>();
  const auto peak = ran.json["peak_bytes"].get<double>();
  EXPECT_LE(peak, predicted);
  EXPECT_GE(peak, 0.95 * predicted);
  EXPECT_EQ(ran.json["compiles"].get<int>(), 1);
  EXPECT_EQ(ran.json["ids"].size(), 4U);
}

INSTANTIATE_TEST_SUITE_P(Context, Memory, testing::Values(256, 4096));

// A model of 0.6 MB whose tokenizer.json has 8 and 11 MB: reading the text is the peak.
class MemoryOfTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(MemoryOfTokenizer, ThePeakIsWithinFivePercentBelowThePrediction) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / (std::string("memory-") + GetParam());
  std::filesystem::create_directories(folder);
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(std::filesystem::path(HONE_TEST_DATA "/models/llama-gqa") / name,
                               folder / name, std::filesystem::copy_options::overwrite_existing);
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::filesystem::copy_file(std::filesystem::path(HONE_VOCAB_DIR) / GetParam() / name, folder / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  const Ran ran = run_model(folder.string(), "--ids 1,2,3");
  std::filesystem::remove_all(folder);
  ASSERT_EQ(ran.exit_code, 0);
  const auto predicted = ran.json["predicted_bytes"].get<double>();
  const auto peak = ran.json["peak_bytes"].get<double>();
  EXPECT_LE(peak, predicted);
  EXPECT_GE(peak, 0.95 * predicted);
}

INSTANTIATE_TEST_SUITE_P(Published, MemoryOfTokenizer, testing::Values("qwen3", "deepseek_v3"));

class Budget : public Memory {};

// The number after the first `word` of `text`; -1 if there is none.
long long number_after(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + word.size());
}

TEST_P(Budget, OneByteTooFewIsRefusedWithTheContextThatFits) {
  const Ran whole = run("--ctx " + std::to_string(GetParam()));
  ASSERT_EQ(whole.exit_code, 0);
  const auto need = whole.json["predicted_bytes"].get<long long>();
  const std::string budget = " --memory " + std::to_string(need - 1);

  const Ran refused = run("--ctx " + std::to_string(GetParam()) + budget);
  EXPECT_EQ(refused.exit_code, 4);
  ASSERT_TRUE(refused.json.contains("error"));
  const Json& error = refused.json["error"];
  EXPECT_EQ(error["fault"], "user");
  EXPECT_EQ(number_after(error["expected"].get<std::string>(), "need "), need);
  EXPECT_EQ(number_after(error["actual"].get<std::string>(), "have "), need - 1);
  const long long context = number_after(error["try"].get<std::string>(), "--ctx ");
  ASSERT_GT(context, 0) << error["try"];
  EXPECT_LT(context, GetParam());

  const Ran fits = run("--ctx " + std::to_string(context) + budget);
  EXPECT_EQ(fits.exit_code, 0);
  EXPECT_EQ(fits.json["ids"].size(), 4U);
  const Ran one_more = run("--ctx " + std::to_string(context + 1) + budget);
  EXPECT_EQ(one_more.exit_code, 4) << "--ctx " << context << " was not the largest";
}

INSTANTIATE_TEST_SUITE_P(Context, Budget, testing::Values(4096));

}  // namespace
}  // namespace hone::test
