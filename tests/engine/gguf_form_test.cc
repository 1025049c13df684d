// Hugging Face folders written as GGUF and read again: the reference logits of the folder hold for the file.
#include <filesystem>
#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/quantize_file.h"
#include "expected_model.h"
#include "file/gguf.h"
#include "file/open.h"

namespace hone::test {
namespace {

class AsGguf : public testing::TestWithParam<const char*> {
 protected:
  AsGguf() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-gguf-form-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~AsGguf() override { std::filesystem::remove_all(folder_); }

  std::string written() const { return (folder_ / "written.gguf").string(); }

  Result<QuantizeReport> write(DType type) const {
    const Checkpoint source = HONE_TRY(open_checkpoint(data_path(std::string("models/") + GetParam())));
    const std::unique_ptr<ThreadPool> pool = HONE_TRY(ThreadPool::create(2));
    return quantize_file(source, written(), {.type = type}, *pool);
  }

  std::filesystem::path folder_;
};

EngineOptions exact_options() {
  EngineOptions options;
  options.level = Level::O0;
  options.all_logits = true;
  options.context = 48;
  options.chunk = 48;
  options.threads = 2;
  return options;
}

class Written : public AsGguf {};
class Refused : public AsGguf {};

TEST_P(Written, HasTheReferencesLogits) {
  const Expected expected =
      read_expected(data_path(std::string("models/") + GetParam() + "/expected.safetensors"));
  const Result<QuantizeReport> report = write(DType::F32);
  ASSERT_TRUE(report.ok()) << describe(report.error());
  const std::unique_ptr<Session> session = open_session(written(), exact_options());
  ASSERT_NE(session, nullptr);
  for (const std::string& warning : session->model().config.warnings) ADD_FAILURE() << warning;
  const double bound = f32_tolerance(session->model().config, expected.largest);
  for (std::size_t i = 0; i < expected.ids.size(); ++i) {
    EXPECT_LE(largest_difference(all_logits(*session, expected.ids[i], 48), expected.logits[i]), bound);
  }
}

TEST_P(Written, VectorsAndRoutersAreF32) {
  const Result<QuantizeReport> report = write(DType::BF16);
  ASSERT_TRUE(report.ok()) << describe(report.error());
  const Result<Checkpoint> file = read_gguf(written());
  ASSERT_TRUE(file.ok());
  for (const TensorEntry& entry : file->tensors) {
    const bool matrix = entry.shape.size() >= 2 && entry.name.find("ffn_gate_inp") == std::string::npos;
    EXPECT_EQ(entry.dtype, matrix ? DType::BF16 : DType::F32) << entry.name;
  }
}

constexpr const char* kWritten[] = {"chatglm3",
                                    "deepseek-v2-lite",
                                    "deepseek-v3",
                                    "gemma2",
                                    "gemma2-scalar",
                                    "gemma3",
                                    "glm4",
                                    "llama-gqa",
                                    "llama-mha-tied",
                                    "llama-odd",
                                    "llama-rope-linear",
                                    "llama-rope-llama3",
                                    "llama-rope-yarn",
                                    "mistral",
                                    "olmo2",
                                    "phi3",
                                    "phi3-longrope",
                                    "qwen2",
                                    "qwen2-untied-bf16",
                                    "qwen3",
                                    "qwen3-moe"};

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Written, testing::ValuesIn(kWritten), name_of);

// What GGUF has no key for is an error that names it, before anything is written.
TEST_P(Refused, WhatGgufCannotSay) {
  static const std::map<std::string, std::string> kReasons{
      {"deepseek-v2", "mscale other than mscale_all_dim"},
      {"glm", "model_type glm"},
      {"llama-rope-dynamic", "a rope of type dynamic"},
      {"qwen2-moe", "dense layers between those with experts"},
      {"qwen2-window",
       "these layer_types, which follow no period; GGUF's architecture qwen2 has no key for: a sliding "
       "window"},
  };
  const Result<QuantizeReport> report = write(DType::F32);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::BadModel);
  EXPECT_NE(report.error().actual.find(kReasons.at(GetParam())), std::string::npos) << report.error().actual;
  EXPECT_FALSE(std::filesystem::exists(written()));
}

INSTANTIATE_TEST_SUITE_P(Models, Refused,
                         testing::Values("deepseek-v2", "glm", "llama-rope-dynamic", "qwen2-moe",
                                         "qwen2-window"),
                         name_of);

}  // namespace
}  // namespace hone::test
