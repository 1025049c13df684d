// Hugging Face folders written as GGUF and read again: the reference logits of the folder hold for the file.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "../tokens/byte_vocabulary.h"
#include "engine/quantize_file.h"
#include "expected_model.h"
#include "file/gguf.h"
#include "file/open.h"
#include "tokens/load_tokenizer.h"

namespace hone::test {
namespace {

class InFolder : public testing::Test {
 protected:
  InFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-gguf-form-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~InFolder() override { std::filesystem::remove_all(folder_); }

  std::string written() const { return (folder_ / "written.gguf").string(); }

  std::filesystem::path folder_;
};

class AsGguf : public InFolder, public testing::WithParamInterface<const char*> {
 protected:
  Result<QuantizeReport> write(DType type) const {
    const Checkpoint source = HONE_TRY(open_checkpoint(data_path(std::string("models/") + GetParam())));
    const std::unique_ptr<ThreadPool> pool = HONE_TRY(ThreadPool::create(2));
    return quantize_file(source, written(), {.type = type}, *pool);
  }
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

// Values that none of the checkpoints has: what differs from the default of its key has to be written.
struct Change {
  const char* model;
  const char* at;  // in config.json
  const char* value;
};
class Changed : public InFolder, public testing::WithParamInterface<Change> {};

TEST_P(Changed, HasTheLogitsOfTheFolder) {
  const Change& change = GetParam();
  const std::string models = data_path(std::string("models/") + change.model);
  const std::string source = (folder_ / "source").string();
  std::filesystem::copy(models, source);
  nlohmann::json config = nlohmann::json::parse(std::ifstream(source + "/config.json"));
  config[nlohmann::json::json_pointer(change.at)] = nlohmann::json::parse(change.value);
  std::ofstream(source + "/config.json") << config.dump();
  const Result<Checkpoint> checkpoint = open_checkpoint(source);
  const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(2);
  ASSERT_TRUE(checkpoint.ok() && pool.ok());
  const Result<QuantizeReport> report = quantize_file(*checkpoint, written(), {.type = DType::F32}, **pool);
  ASSERT_TRUE(report.ok()) << describe(report.error());
  const std::unique_ptr<Session> folder = open_session(source, exact_options());
  const std::unique_ptr<Session> file = open_session(written(), exact_options());
  ASSERT_TRUE(folder != nullptr && file != nullptr);
  const Expected unchanged = read_expected(models + "/expected.safetensors");
  const double bound = f32_tolerance(folder->model().config, unchanged.largest);
  const std::vector<float> logits = all_logits(*folder, unchanged.ids[0], 48);
  EXPECT_LE(largest_difference(all_logits(*file, unchanged.ids[0], 48), logits), bound);
  EXPECT_GT(largest_difference(logits, unchanged.logits[0]), 10 * bound) << "the change does nothing";
}

std::string name_of_change(const testing::TestParamInfo<Change>& info) {
  std::string name = info.param.model;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Keys, Changed,
                         testing::Values(Change{"llama-rope-yarn", "/rope_scaling/attention_factor", "0.7"},
                                         Change{"gemma3", "/sliding_window_pattern", "3"}),
                         name_of_change);

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

// llama-gqa, which has 320 rows of embedding, with a tokenizer of 259 tokens.
class WithTokenizer : public InFolder {
 protected:
  std::string source() const { return (folder_ / "source").string(); }

  void SetUp() override {
    std::filesystem::copy(data_path("models/llama-gqa"), source());
    nlohmann::json vocabulary;
    for (unsigned byte = 0; byte < 256; ++byte)
      vocabulary[byte_letter(static_cast<unsigned char>(byte))] = byte;
    vocabulary["ab"] = 256;
    const nlohmann::json tokenizer = {
        {"added_tokens",
         {{{"id", 257}, {"content", "<s>"}, {"special", true}, {"normalized", false}, {"rstrip", true}},
          {{"id", 258}, {"content", "<end>"}, {"special", true}, {"normalized", false}}}},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
        {"decoder", {{"type", "ByteLevel"}}},
        {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b"}}}}};
    write_file("tokenizer.json", tokenizer.dump());
    write_file("tokenizer_config.json",
               nlohmann::json{{"bos_token", "<s>"},
                              {"eos_token", "<end>"},
                              {"chat_template", "{{ bos_token }}{{ messages[0].content }}"}}
                   .dump());
  }

  void write_file(const std::string& name, const std::string& text) const {
    std::ofstream(source() + "/" + name) << text;
  }

  Result<QuantizeReport> write_source() const {
    const Checkpoint checkpoint = HONE_TRY(open_checkpoint(source()));
    const std::unique_ptr<ThreadPool> pool = HONE_TRY(ThreadPool::create(2));
    return quantize_file(checkpoint, written(), {.type = DType::Q8_0}, *pool);
  }
};

TEST_F(WithTokenizer, TokenizerAndTemplateTravelAlong) {
  const Result<QuantizeReport> report = write_source();
  ASSERT_TRUE(report.ok()) << describe(report.error());
  EXPECT_EQ(report->notes, std::vector<std::string>{"token <s> loses rstrip: GGUF has no key for it"});
  const Result<Checkpoint> file = open_checkpoint(written());
  ASSERT_TRUE(file.ok());
  const Result<Tokenizer> tokenizer = require_tokenizer(*file);
  ASSERT_TRUE(tokenizer.ok()) << describe(tokenizer.error());
  EXPECT_EQ(tokenizer->vocab_size(), 320);
  EXPECT_EQ(*tokenizer->encode("<s>abc<end>"), (Ids{257, 256, 'c', 258}));
  EXPECT_EQ(tokenizer->bos_text(), "<s>");
  EXPECT_EQ(tokenizer->eos_text(), "<end>");
  EXPECT_EQ(tokenizer->chat_template(), "{{ bos_token }}{{ messages[0].content }}");
}

TEST_F(WithTokenizer, OneThatGgufCannotSayIsLeftOutAndNamed) {
  write_file("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const Result<QuantizeReport> report = write_source();
  ASSERT_TRUE(report.ok()) << describe(report.error());
  ASSERT_EQ(report->notes.size(), 1U);
  EXPECT_TRUE(
      report->notes[0].starts_with("the file has no tokenizer: GGUF has no way to say this normaliser"))
      << report->notes[0];
  const Result<Checkpoint> file = open_checkpoint(written());
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->metadata.find("tokenizer.ggml.model"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Models, Refused,
                         testing::Values("deepseek-v2", "glm", "llama-rope-dynamic", "qwen2-moe",
                                         "qwen2-window"),
                         name_of);

}  // namespace
}  // namespace hone::test
