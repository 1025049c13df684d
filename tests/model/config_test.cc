// Keys of GGUF and of config.json: used, refused by name, or warned of.
#include "model/config.h"

#include <cmath>
#include <limits>

#include "made_checkpoint.h"

namespace hone::test {
namespace {

ModelConfig config_of(const Checkpoint& checkpoint) {
  Result<ModelConfig> config = read_config(checkpoint);
  if (!config.ok()) {
    ADD_FAILURE() << text_of(config.error());
    return {};
  }
  return std::move(config).value();
}

ModelConfig config_of(const nlohmann::json& json) {
  return config_of(made_folder(json));
}

nlohmann::json with(std::initializer_list<std::pair<const char*, nlohmann::json>> changes,
                    nlohmann::json json = llama_json()) {
  for (const auto& [key, value] : changes) json[key] = value;
  return json;
}

TEST(Config, BothStylesGiveTheSameSizes) {
  for (const Checkpoint& checkpoint : {made_gguf(), made_folder(llama_json())}) {
    const ModelConfig config = config_of(checkpoint);
    EXPECT_EQ(config.vocabulary, 32);
    EXPECT_EQ(config.dim, 16);
    EXPECT_EQ(config.layers, 2);
    EXPECT_EQ(config.heads, 4);
    EXPECT_EQ(config.kv_heads, 2);
    EXPECT_EQ(config.head_dim, 4);
    EXPECT_EQ(config.v_head_dim, 4);
    EXPECT_EQ(config.ffn, 24);
    EXPECT_EQ(config.context_length, 64);
    EXPECT_EQ(config.norm_eps, 1e-5);
    EXPECT_EQ(config.rope.theta, 10000);
    EXPECT_EQ(config.rope.dim, 4);
    EXPECT_EQ(config.attention_scale, 0.5);
    EXPECT_TRUE(config.warnings.empty());
    EXPECT_TRUE(config.refused.empty());
    EXPECT_TRUE(build(checkpoint).ok());
  }
  EXPECT_TRUE(config_of(made_gguf()).rope.interleaved);
  EXPECT_FALSE(config_of(llama_json()).rope.interleaved);
}

TEST(Config, UnknownKeysAreWarningsWithTheNearestName) {
  const ModelConfig json = config_of(with({{"rope_thetta", 5}, {"zzzzzzzzzz", 1}}));
  ASSERT_EQ(json.warnings.size(), 2U);
  expect_says(json.warnings[0], {"rope_thetta", "nearest: rope_theta"});
  expect_says(json.warnings[1], {"zzzzzzzzzz"});
  Checkpoint gguf = made_gguf();
  gguf.metadata.add_integer("llama.block_counts", 3);
  gguf.metadata.add_integer("lama.block_count", 3);
  gguf.metadata.add_string("general.whatever", "x");
  const ModelConfig config = config_of(gguf);
  ASSERT_EQ(config.warnings.size(), 2U);
  expect_says(config.warnings[0], {"llama.block_counts", "nearest: block_count"});
  expect_says(config.warnings[1], {"lama.block_count"});
}

TEST(Config, KeysThatChangeTheMathsAreRefusedUnlessNeutral) {
  const ModelConfig neutral = config_of(with({{"residual_multiplier", 1.0},
                                              {"clip_qkv", nullptr},
                                              {"num_experts", 0},
                                              {"sliding_window", nullptr},
                                              {"attention_bias", false}}));
  EXPECT_TRUE(neutral.refused.empty());
  const ModelConfig set = config_of(
      with({{"residual_multiplier", 0.5}, {"clip_qkv", 8}, {"sliding_window", 16}, {"num_experts", 4}}));
  ASSERT_EQ(set.refused.size(), 4U);  // in the order of the object: by name
  expect_says(set.refused[0], {"clip_qkv = 8"});
  expect_says(set.refused[1], {"num_experts = 4"});
  expect_says(set.refused[2], {"residual_multiplier = 0.5"});
  expect_says(set.refused[3], {"sliding_window = 16"});

  Checkpoint gguf = made_gguf();
  gguf.metadata.add_real("llama.logit_scale", 1);
  EXPECT_TRUE(config_of(gguf).refused.empty());
  gguf.metadata.add_real("llama.attention.clamp_kqv", 2.5);
  gguf.metadata.add_string("llama.rope.scaling.type", "spiral");
  const ModelConfig refused = config_of(gguf);
  ASSERT_EQ(refused.refused.size(), 2U);
  expect_says(refused.refused[0], {"llama.attention.clamp_kqv = 2.5"});
  expect_says(refused.refused[1], {"llama.rope.scaling.type = spiral"});
}

TEST(Config, EveryFaultIsReportedAtOnce) {
  nlohmann::json json = with({{"num_hidden_layers", "two"}, {"vocab_size", -3}, {"clip_qkv", 8}});
  json.erase("hidden_size");
  const Result<ModelConfig> config = read_config(made_folder(json));
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().code, ErrorCode::BadModel);
  EXPECT_EQ(config.error().fault, Fault::File);
  expect_says(text_of(config.error()), {"hidden_size", "num_hidden_layers", "clip_qkv = 8", "two"});
}

TEST(Config, HostileValuesAreErrors) {
  const std::vector<std::pair<const char*, nlohmann::json>> bad{
      {"num_attention_heads", 0},
      {"num_attention_heads", -4},
      {"num_key_value_heads", 3},
      {"num_key_value_heads", 0},
      {"num_hidden_layers", std::int64_t{1} << 40},
      {"hidden_size", 0},
      {"hidden_size", std::uint64_t{1} << 63},
      {"hidden_size", 1e300},
      {"head_dim", -1},
      {"head_dim", 3},
      {"vocab_size", 0},
      {"intermediate_size", nlohmann::json::array({24})},
      {"rms_norm_eps", 0},
      {"rms_norm_eps", "1e-5"},
      {"rope_theta", -1},
      {"rope_theta", std::numeric_limits<double>::quiet_NaN()},
      {"rope_scaling", 3},
      {"rope_scaling", nlohmann::json{{"rope_type", "linear"}, {"factor", 0}}},
      {"rope_scaling", nlohmann::json{{"rope_type", "linear"}, {"factor", nlohmann::json::array()}}},
      {"rope_scaling", nlohmann::json{{"rope_type", 5}}},
      {"rope_scaling", nlohmann::json{{"rope_type", "llama3"}, {"factor", 8}}},
      {"rope_scaling",
       nlohmann::json{{"rope_type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1}}}},
      {"rope_scaling",
       nlohmann::json{{"rope_type", "longrope"}, {"short_factor", {1, "x"}}, {"long_factor", {1, 2}}}},
      {"rope_scaling", nlohmann::json{{"rope_type", "dynamic"}, {"factor", 0.5}}},
      {"layer_types", nlohmann::json::array({"full_attention"})},
      {"tie_word_embeddings", 1},
      {"hidden_act", "relu"},
      {"model_type", nlohmann::json::object()},
      {"model_type", "llamo"},
  };
  for (const auto& [key, value] : bad) {
    const Result<ModelConfig> config = read_config(made_folder(with({{key, value}})));
    ASSERT_FALSE(config.ok()) << key << " = " << value;
    EXPECT_EQ(config.error().code, ErrorCode::BadModel) << key;
    EXPECT_EQ(config.error().fault, Fault::File) << key;
  }
}

TEST(Config, RopeInBothForms) {
  const nlohmann::json scaling{{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};
  nlohmann::json parameters = scaling;
  parameters["rope_theta"] = 500.0;
  nlohmann::json renewed = with({{"rope_parameters", parameters}});
  renewed.erase("rope_theta");
  renewed.erase("rope_scaling");
  for (const nlohmann::json& json : {with({{"rope_theta", 500.0}, {"rope_scaling", scaling}}), renewed}) {
    const RopeConfig rope = config_of(json).rope;
    EXPECT_EQ(rope.kind, RopeKind::Yarn);
    EXPECT_EQ(rope.theta, 500);
    EXPECT_EQ(rope.factor, 4);
    EXPECT_EQ(rope.original_context, 16);
    EXPECT_DOUBLE_EQ(rope.attention_factor, 0.1 * std::log(4.0) + 1);
  }
  const ModelConfig refused =
      config_of(with({{"rope_scaling", {{"rope_type", "spiral"}, {"mrope_section", {1, 2}}}}}));
  ASSERT_EQ(refused.refused.size(), 2U);
  expect_says(refused.refused[0], {"rope_scaling.mrope_section"});
  expect_says(refused.refused[1], {"rope_scaling.rope_type = spiral"});
  const ModelConfig unknown = config_of(with({{"rope_scaling", {{"rope_type", "linear"}, {"factr", 2}}}}));
  ASSERT_EQ(unknown.warnings.size(), 1U);
  expect_says(unknown.warnings[0], {"rope_scaling.factr", "nearest: factor"});
}

TEST(Config, OnlyARopeOfEveryLengthLiftsTheContext) {
  EXPECT_FALSE(config_of(llama_json()).any_context);
  const ModelConfig dynamic = config_of(with({{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2}}}}));
  EXPECT_TRUE(dynamic.any_context);
  EXPECT_TRUE(dynamic.depends_on_length());
  EXPECT_EQ(dynamic.rope.original_context, 64);
}

TEST(Config, WindowsOfEachFamily) {
  const auto slides = [](const ModelConfig& config) {
    std::string out;
    for (std::int64_t i = 0; i < config.layers; ++i) out += config.slides(i) ? 's' : 'f';
    return out;
  };
  const auto json = [](const char* type,
                       std::initializer_list<std::pair<const char*, nlohmann::json>> changes) {
    nlohmann::json out = with(changes);
    out["model_type"] = type;
    out["num_hidden_layers"] = 8;
    return out;
  };
  EXPECT_EQ(slides(config_of(json("mistral", {{"sliding_window", 9}}))), "ssssssss");
  EXPECT_EQ(slides(config_of(json("mistral", {{"sliding_window", nullptr}}))), "ffffffff");
  EXPECT_EQ(config_of(json("mistral", {})).sliding_window, 4096);
  EXPECT_EQ(slides(config_of(json("qwen2", {{"sliding_window", 9}, {"max_window_layers", 3}}))), "ffffffff");
  EXPECT_EQ(slides(config_of(json(
                "qwen2", {{"use_sliding_window", true}, {"sliding_window", 9}, {"max_window_layers", 3}}))),
            "fffsssss");
  EXPECT_EQ(slides(config_of(json("phi3", {{"sliding_window", 9}}))), "ssssssss");
  EXPECT_EQ(slides(config_of(json("gemma2", {}))), "sfsfsfsf");
  EXPECT_EQ(slides(config_of(json("gemma3_text", {}))), "sssssfss");
  EXPECT_EQ(slides(config_of(json("gemma3_text", {{"sliding_window_pattern", 3}}))), "ssfssfss");
}

TEST(Config, GemmasDefaultsAreTransformers) {
  nlohmann::json json = llama_json();
  json["model_type"] = "gemma2";
  json.erase("tie_word_embeddings");
  const ModelConfig config = config_of(json);
  EXPECT_EQ(config.attention_softcap, 50);
  EXPECT_EQ(config.final_softcap, 30);
  EXPECT_EQ(config.attention_scale, 1.0 / 16);
  EXPECT_EQ(config.embedding_scale, 4);
  EXPECT_EQ(config.norm_offset, 1);
  EXPECT_EQ(config.tied, true);
  json["attn_logit_softcapping"] = nullptr;
  json["query_pre_attn_scalar"] = 64;
  EXPECT_EQ(config_of(json).attention_softcap, 0);
  EXPECT_EQ(config_of(json).attention_scale, 1.0 / 8);
}

nlohmann::json gemma3_with_images() {
  return {
      {"model_type", "gemma3"},
      {"architectures", {"Gemma3ForConditionalGeneration"}},
      {"image_token_index", 262144},
      {"mm_tokens_per_image", 256},
      {"vision_config", nlohmann::json::object()},
      {"text_config", {{"model_type", "gemma3_text"}, {"num_hidden_layers", 9}, {"sliding_window", 1024}}}};
}

// The values of transformers' Gemma3TextConfig; a nested config leaves out what equals them.
TEST(Config, KeysOfANestedTextModel) {
  const ModelConfig config = config_of(gemma3_with_images());
  EXPECT_TRUE(config.warnings.empty());
  EXPECT_TRUE(config.refused.empty());
  EXPECT_TRUE(config.notes.empty());
  EXPECT_EQ(config.layers, 9);
  EXPECT_EQ(config.sliding_window, 1024);
  EXPECT_EQ(config.vocabulary, 262208);
  EXPECT_EQ(config.dim, 2304);
  EXPECT_EQ(config.ffn, 9216);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.context_length, 131072);
  EXPECT_EQ(config.norm_eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.local_rope->theta, 1e4);
  EXPECT_EQ(config.attention_scale, 1.0 / 16);
  EXPECT_EQ(config.tied, true);
  EXPECT_TRUE(config.slides(4) && !config.slides(5));
  nlohmann::json json = gemma3_with_images();
  json["text_config"]["num_hidden_layers"] = nullptr;
  EXPECT_FALSE(read_config(made_folder(json)).ok());
}

TEST(Config, KeysOfANestedTextModelAreSortedWhereTheyStand) {
  nlohmann::json json = gemma3_with_images();
  json["text_config"]["hiden_size"] = 5;
  json["text_config"]["clip_qkv"] = 8;
  json["text_config"]["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}, {"factr", 2}};
  json["mm_tokens_per_imge"] = 2;
  json["hidden_size"] = 2;
  json["quantization_config"] = {{"bits", 4}};
  const ModelConfig config = config_of(json);
  ASSERT_EQ(config.warnings.size(), 4U);
  expect_says(config.warnings[0], {"key hidden_size is not known"});
  expect_says(config.warnings[1], {"key mm_tokens_per_imge is not known", "nearest: mm_tokens_per_image"});
  expect_says(config.warnings[2], {"key text_config.hiden_size is not known", "nearest: hidden_size"});
  expect_says(config.warnings[3], {"key text_config.rope_scaling.factr", "nearest: factor"});
  ASSERT_EQ(config.refused.size(), 2U);
  expect_says(config.refused[0], {"key quantization_config"});
  expect_says(config.refused[1], {"key text_config.clip_qkv = 8"});

  nlohmann::json wrong = gemma3_with_images();
  wrong["text_config"]["hidden_size"] = "many";
  wrong["text_config"]["layer_types"] = nlohmann::json::array({"full_attention"});
  const Result<ModelConfig> faulty = read_config(made_folder(wrong));
  ASSERT_FALSE(faulty.ok());
  expect_says(text_of(faulty.error()), {"text_config.hidden_size", "text_config.layer_types"});
}

TEST(Config, AnotherTextModelInsideIsAnError) {
  nlohmann::json json = gemma3_with_images();
  json["text_config"]["model_type"] = "llama";
  const Result<ModelConfig> other = read_config(made_folder(json));
  ASSERT_FALSE(other.ok());
  expect_says(text_of(other.error()), {"text_config.model_type", "gemma3_text", "llama"});
  for (const nlohmann::json& value : {nlohmann::json(), nlohmann::json(3), nlohmann::json::array({1})}) {
    json["text_config"] = value;
    const Result<ModelConfig> none = read_config(made_folder(json));
    ASSERT_FALSE(none.ok());
    expect_says(text_of(none.error()), {"key text_config", "an object"});
  }
  json.erase("text_config");
  EXPECT_FALSE(read_config(made_folder(json)).ok());
}

TEST(Config, TensorsBesideTheTextModel) {
  Checkpoint folder = made_folder(gemma3_with_images());
  add_tensor(folder, "language_model.model.embed_tokens.weight", {262208, 2304});
  add_tensor(folder, "vision_tower.vision_model.post_layernorm.weight", {8});
  add_tensor(folder, "vision_towr.weight", {8});
  add_tensor(folder, "language_model.lm_head.weight", {262208, 2304});
  const ModelConfig config = config_of(folder);
  ASSERT_EQ(config.warnings.size(), 1U);
  expect_says(config.warnings[0], {"language_model.lm_head.weight was not used: tie_word_embeddings"});
  ASSERT_EQ(config.notes.size(), 1U);
  expect_says(config.notes[0], {"1 tensors", "vision_tower"});
  const Result<Graph> graph = build(folder);
  ASSERT_FALSE(graph.ok());
  const std::string text = text_of(graph.error());
  expect_says(text, {"language_model.model.layers.0.self_attn.q_proj.weight is missing",
                     "vision_towr.weight is not used"});
  EXPECT_EQ(text.find("vision_tower"), std::string::npos) << text;
  EXPECT_EQ(text.find("language_model.lm_head"), std::string::npos) << text;
}

}  // namespace
}  // namespace hone::test
