#include "file/huggingface.h"

#include <cstring>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "file/open.h"
#include "file/safetensors.h"
#include "temporary_folder.h"

namespace hone::testing {
namespace {

// A file with one f32 tensor of one value for each name.
void write_weights(const TemporaryFolder& folder, const char* file, const std::vector<std::string>& names,
                   float first) {
  std::vector<float> values(names.size());
  std::vector<SafetensorsTensor> tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    values[i] = first + static_cast<float>(i);
    tensors.push_back({names[i], DType::F32, {1}, std::as_bytes(std::span(&values[i], 1))});
  }
  ASSERT_TRUE(write_safetensors(folder.path(file), tensors).ok());
}

float value_of(const Checkpoint& checkpoint, std::string_view name) {
  const TensorEntry* tensor = checkpoint.find_tensor(name);
  float value = -1;
  if (tensor == nullptr) return value;
  EXPECT_TRUE(checkpoint.read_tensor(*tensor, 0, std::as_writable_bytes(std::span(&value, 1))).ok());
  return value;
}

constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kIndexText =
    R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-2.safetensors"}})";

TEST(HuggingFace, OneFile) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 4})");
  folder.write("generation_config.json", R"({"eos_token_id": 2})");
  write_weights(folder, "model.safetensors", {"a", "b"}, 1);
  const auto result = open_checkpoint(folder.path(""));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->format, "huggingface");
  EXPECT_EQ(result->folder, folder.path(""));
  ASSERT_NE(result->config, nullptr);
  EXPECT_EQ(result->config->at("hidden_size"), 4);
  EXPECT_EQ(result->generation_config->at("eos_token_id"), 2);
  EXPECT_EQ(architecture_name(*result), "LlamaForCausalLM");
  EXPECT_EQ(value_of(*result, "b"), 2);
  EXPECT_TRUE(require_model(*result).ok());
}

TEST(HuggingFace, Shards) {
  const TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "qwen2"})");
  folder.write(kIndexFile, kIndexText);
  write_weights(folder, "model-1.safetensors", {"a"}, 1);
  write_weights(folder, "model-2.safetensors", {"b", "c", "not in the index"}, 2);
  const auto result = open_checkpoint(folder.path(""));
  ASSERT_TRUE(result.ok()) << result.error().message << result.error().actual;
  ASSERT_EQ(result->files.size(), 2U);
  EXPECT_EQ(result->find_tensor("a")->file, 0U);
  EXPECT_EQ(result->find_tensor("c")->file, 1U);
  EXPECT_EQ(value_of(*result, "a"), 1);
  EXPECT_EQ(value_of(*result, "b"), 2);
  EXPECT_EQ(value_of(*result, "c"), 3);
  EXPECT_NE(result->find_tensor("not in the index"), nullptr);
  EXPECT_EQ(architecture_name(*result), "qwen2");
}

TEST(HuggingFace, OneShardAlone) {
  const TemporaryFolder folder;
  folder.write("config.json", "{}");
  folder.write(kIndexFile, kIndexText);
  write_weights(folder, "model-2.safetensors", {"b", "c"}, 2);
  const auto result = open_checkpoint(folder.path("model-2.safetensors"));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tensors.size(), 2U);
  EXPECT_NE(result->config, nullptr);
  EXPECT_EQ(result->path, folder.path("model-2.safetensors"));
}

TEST(HuggingFace, MissingShardsAreAllNamed) {
  const TemporaryFolder folder;
  folder.write(kIndexFile, kIndexText);
  const auto result = open_checkpoint(folder.path(""));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::BadFile);
  EXPECT_EQ(result.error().actual, "missing: model-1.safetensors, model-2.safetensors");
}

TEST(HuggingFace, ATensorLiesWhereTheIndexSays) {
  const TemporaryFolder folder;
  folder.write(kIndexFile, kIndexText);
  write_weights(folder, "model-1.safetensors", {"a", "b"}, 1);
  write_weights(folder, "model-2.safetensors", {"c"}, 2);
  const auto elsewhere = open_checkpoint(folder.path(""));
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().message, "a tensor must lie in the file that the index names");
  EXPECT_EQ(elsewhere.error().where, folder.path(kIndexFile) + ", line 1:48, byte 47");
  EXPECT_EQ(elsewhere.error().actual, "in model-1.safetensors");
  write_weights(folder, "model-1.safetensors", {"a"}, 1);
  const auto nowhere = open_checkpoint(folder.path(""));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().actual, "in no file");
  write_weights(folder, "model-2.safetensors", {"a", "b", "c"}, 2);
  const auto twice = open_checkpoint(folder.path(""));
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message, "a tensor must lie in one file only");
  EXPECT_EQ(twice.error().where, folder.path("model-2.safetensors"));
}

TEST(HuggingFace, FoldersWithAPart) {
  const TemporaryFolder folder;
  const auto bare = open_checkpoint(folder.path(""));
  ASSERT_FALSE(bare.ok());
  EXPECT_EQ(bare.error().code, ErrorCode::BadModel);
  EXPECT_EQ(bare.error().message, "a model folder must hold config.json");
  folder.write("tokenizer.json", "{}");
  const auto tokenizer = open_checkpoint(folder.path(""));
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(tokenizer->config, nullptr);
  EXPECT_EQ(architecture_name(*tokenizer), "unknown");
  ASSERT_FALSE(require_model(*tokenizer).ok());
  EXPECT_EQ(require_model(*tokenizer).error().message, "a model needs its config.json");
  folder.write("config.json", "{}");
  const auto config = open_checkpoint(folder.path(""));
  ASSERT_TRUE(config.ok());
  ASSERT_FALSE(require_model(*config).ok());
  EXPECT_EQ(require_model(*config).error().message, "a model needs its weights");
}

TEST(HuggingFace, PicklesAreRefusedWithTheWayOut) {
  const TemporaryFolder folder;
  folder.write("config.json", "{}");
  folder.write("pytorch_model.bin", "PK");
  folder.write("more.pth", "x");
  const auto result = open_checkpoint(folder.path(""));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::BadModel);
  EXPECT_EQ(result.error().actual, "more.pth, pytorch_model.bin");
  EXPECT_NE(result.error().next_step.find("safetensors.torch.save_file"), std::string::npos);
  write_weights(folder, "model.safetensors", {"a"}, 1);
  EXPECT_TRUE(open_checkpoint(folder.path("")).ok()) << "safetensors beside a pickle serve";
}

TEST(HuggingFace, ABrokenConfigIsNamed) {
  const TemporaryFolder folder;
  folder.write("config.json", "[]");
  const auto result = open_checkpoint(folder.path(""));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().where, folder.path("config.json") + ", line 1:1, byte 0");
}

}  // namespace
}  // namespace hone::testing
