// Gemma 3 as it is published with images: the text model's keys in `text_config`, its tensors behind a prefix
// and beside those of the vision model. The folder must give what the plain one gives, bit by bit.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "engine/quantize_file.h"
#include "expected_model.h"
#include "file/open.h"

namespace hone::test {
namespace {

struct Form {
  const char* body;  // in place of "model."
  const char* vision;
  const char* config;  // of the plain folder
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TextModel : public testing::TestWithParam<Form> {
 protected:
  TextModel() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hone-text-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(folder_ / "plain");
    std::filesystem::create_directory(folder_ / "wrapped");
    const std::filesystem::path source = data_path("models/gemma3");
    std::filesystem::copy(source / GetParam().config, folder_ / "plain/config.json");
    std::filesystem::copy(source / "model.safetensors", folder_ / "plain/model.safetensors");
    nlohmann::json text = nlohmann::json::parse(bytes_of(path("plain/config.json")));
    // Equal to the defaults of transformers, which leaves such keys out of a nested config.
    for (const char* key : {"hidden_activation", "attention_bias", "tie_word_embeddings"}) text.erase(key);
    const nlohmann::json outer{
        {"architectures", {"Gemma3ForConditionalGeneration"}},
        {"model_type", "gemma3"},
        {"boi_token_index", 94},
        {"eos_token_id", {1, 95}},
        {"mm_tokens_per_image", 256},
        {"torch_dtype", "bfloat16"},
        {"vision_config", {{"hidden_size", 1152}, {"model_type", "siglip_vision_model"}}},
        {"text_config", text}};
    std::ofstream(path("wrapped/config.json")) << outer.dump();
    wrap_tensors();
  }
  ~TextModel() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  void wrap_tensors() const {
    const Result<Checkpoint> source = read_safetensors(path("plain/model.safetensors"));
    ASSERT_TRUE(source.ok());
    std::vector<SafetensorsTensor> tensors;
    for (const TensorEntry& entry : source->tensors) {
      const std::string name = GetParam().body + entry.name.substr(std::string("model.").size());
      tensors.push_back(
          {name, *entry.dtype, entry.shape, source->files[0]->data().subspan(entry.offset, entry.bytes)});
    }
    const std::vector<std::byte> zeros(8 * 2);
    for (const char* name : {"vision_tower.vision_model.embeddings.patch_embedding.weight",
                             "vision_tower.vision_model.post_layernorm.bias",
                             "multi_modal_projector.mm_input_projection_weight"}) {
      tensors.push_back({std::string(GetParam().vision) + name, DType::BF16, {8}, zeros});
    }
    const Status written = write_safetensors(path("wrapped/model.safetensors"), tensors, {});
    ASSERT_TRUE(written.ok()) << describe(written.error());
  }

  std::filesystem::path folder_;
};

TEST_P(TextModel, HasTheBitsOfThePlainFolder) {
  const Ids ids = read_expected(data_path("models/gemma3/expected.safetensors")).ids[0];
  for (const Level level : {Level::O0, Level::O3}) {
    EngineOptions options;
    options.level = level;
    options.all_logits = true;
    options.context = 48;
    options.threads = 2;
    options.strict = level == Level::O3;  // what is left out on purpose is no unknown key
    const std::unique_ptr<Session> plain = open_session(path("plain"), options);
    const std::unique_ptr<Session> wrapped = open_session(path("wrapped"), options);
    ASSERT_TRUE(plain != nullptr && wrapped != nullptr);
    EXPECT_TRUE(same_bits(all_logits(*wrapped, ids, 48), all_logits(*plain, ids, 48)));
    EXPECT_TRUE(wrapped->model().config.warnings.empty());
    ASSERT_EQ(wrapped->model().config.notes.size(), 1U);
    EXPECT_TRUE(wrapped->model().config.notes[0].starts_with("3 tensors that read images were left out"));
  }
}

TEST_P(TextModel, WritesTheGgufOfThePlainFolder) {
  const Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::create(2);
  ASSERT_TRUE(pool.ok());
  for (const std::string name : {"plain", "wrapped"}) {
    const Result<Checkpoint> source = open_checkpoint(path(name.c_str()));
    ASSERT_TRUE(source.ok());
    const Result<QuantizeReport> report =
        quantize_file(*source, path((name + ".gguf").c_str()), {.type = DType::BF16}, **pool);
    ASSERT_TRUE(report.ok()) << describe(report.error());
    EXPECT_EQ(report->notes.size(), name == "wrapped" ? 1U : 0U);
  }
  const std::string plain = bytes_of(path("plain.gguf"));
  EXPECT_FALSE(plain.empty());
  EXPECT_TRUE(bytes_of(path("wrapped.gguf")) == plain);
}

std::string name_of(const testing::TestParamInfo<Form>& info) {
  constexpr const char* kNames[] = {"saved", "in_memory", "taken_out"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Forms, TextModel,
                         testing::Values(Form{"language_model.model.", "", "config.json"},
                                         Form{"model.language_model.", "model.", "config_v5.json"},
                                         Form{"model.", "", "config.json"}),
                         name_of);

}  // namespace
}  // namespace hone::test
