// Keys of routed experts and of multi-head latent attention: ranges, choices that hone does not have, missing
// experts.
#include <cmath>
#include <map>

#include "made_checkpoint.h"
#include "model/names.h"

namespace hone::test {
namespace {

nlohmann::json deepseek_json() {
  nlohmann::json json = llama_json();
  const std::pair<const char*, nlohmann::json> keys[] = {{"model_type", "deepseek_v3"},
                                                         {"n_routed_experts", 8},
                                                         {"num_experts_per_tok", 2},
                                                         {"moe_intermediate_size", 6},
                                                         {"n_shared_experts", 1},
                                                         {"first_k_dense_replace", 1},
                                                         {"n_group", 4},
                                                         {"topk_group", 2},
                                                         {"kv_lora_rank", 5},
                                                         {"q_lora_rank", nullptr},
                                                         {"qk_nope_head_dim", 6},
                                                         {"qk_rope_head_dim", 4},
                                                         {"v_head_dim", 3},
                                                         {"norm_topk_prob", true},
                                                         {"routed_scaling_factor", 2.5},
                                                         {"scoring_func", "sigmoid"},
                                                         {"topk_method", "noaux_tc"}};
  for (const auto& [key, value] : keys) json[key] = value;
  return json;
}

nlohmann::json with(const char* key, nlohmann::json value) {
  nlohmann::json json = deepseek_json();
  json[key] = std::move(value);
  return json;
}

TEST(ExpertsConfig, SizesOfDeepSeek) {
  const Result<ModelConfig> config = read_config(made_folder(deepseek_json()));
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  EXPECT_TRUE(config->refused.empty());
  EXPECT_TRUE(config->warnings.empty());
  EXPECT_EQ(config->head_dim, 10);
  EXPECT_EQ(config->v_head_dim, 3);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_EQ(config->rope.dim, 4);
  EXPECT_TRUE(config->rope.interleaved);
  EXPECT_EQ(config->latent.q_rank, 0);
  EXPECT_EQ(config->experts.groups, 4);
  EXPECT_EQ(config->experts.shared_ffn, 6);
  EXPECT_TRUE(config->experts.sigmoid);
  EXPECT_TRUE(config->experts.normalise);
}

TEST(ExpertsConfig, ChoicesThatAreNotThereAreRefused) {
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"scoring_func", "softmax"}, {"topk_method", "greedy"}, {"moe_layer_freq", 2}};
  for (const auto& [key, value] : changes) {
    const Result<ModelConfig> config = read_config(made_folder(with(key, value)));
    ASSERT_TRUE(config.ok()) << text_of(config.error());
    ASSERT_EQ(config->refused.size(), 1U) << key;
    EXPECT_NE(config->refused[0].find(key), std::string::npos) << config->refused[0];
  }
  nlohmann::json second = with("model_type", "deepseek_v2");
  second["scoring_func"] = "softmax";
  second["topk_method"] = "greedy";
  const Result<ModelConfig> config = read_config(made_folder(second));
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  ASSERT_EQ(config->refused.size(), 1U);  // DeepSeek-V2 does not normalise
  EXPECT_NE(config->refused[0].find("norm_topk_prob"), std::string::npos) << config->refused[0];
}

TEST(ExpertsConfig, PredictionLayersAreLeftOutWithAWarning) {
  Checkpoint checkpoint = made_folder(with("num_nextn_predict_layers", 2));
  const std::int64_t layers = read_config(checkpoint)->layers;
  const auto add = [&](std::int64_t layer, const char* part) {
    TensorEntry entry;
    entry.name = "model.layers." + std::to_string(layer) + part;
    checkpoint.tensors.push_back(entry);
    return entry.name;
  };
  const std::string first = add(layers, ".eh_proj.weight");
  const std::string second = add(layers + 1, ".embed_tokens.weight");
  const std::string beyond = add(layers + 2, ".embed_tokens.weight");
  checkpoint.index_tensors();
  const Result<ModelConfig> config = read_config(checkpoint);
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  EXPECT_TRUE(config->refused.empty());
  ASSERT_EQ(config->warnings.size(), 1U);
  EXPECT_TRUE(config->warnings[0].starts_with("2 tensors of the layers behind layer")) << config->warnings[0];
  EXPECT_TRUE(is_of_prediction_layer(*config, first));
  EXPECT_TRUE(is_of_prediction_layer(*config, second));
  EXPECT_FALSE(is_of_prediction_layer(*config, beyond));
  EXPECT_FALSE(is_of_prediction_layer(*config, "model.layers.0.mlp.gate.weight"));
  EXPECT_FALSE(is_of_prediction_layer(*config, "model.layers.x"));
}

// GGUF counts them in block_count.
TEST(ExpertsConfig, PredictionLayersOfGgufAreLeftOutToo) {
  Checkpoint checkpoint = made_gguf();
  checkpoint.metadata.add_integer("llama.nextn_predict_layers", 1);
  const Result<ModelConfig> config = read_config(checkpoint);
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  EXPECT_EQ(config->layers, 1);
  EXPECT_TRUE(config->refused.empty());
  ASSERT_EQ(config->warnings.size(), 1U);
  expect_says(config->warnings[0], {"9 tensors of the layers behind layer 0", "(nextn_predict_layers)"});
  EXPECT_TRUE(is_of_prediction_layer(*config, "blk.1.nextn.eh_proj.weight"));
  EXPECT_FALSE(is_of_prediction_layer(*config, "blk.0.attn_q.weight"));
  EXPECT_FALSE(is_of_prediction_layer(*config, "blk.2.nextn.eh_proj.weight"));
  EXPECT_FALSE(is_of_prediction_layer(*config, "model.layers.1.eh_proj.weight"));
  EXPECT_TRUE(build(checkpoint).ok());
  add_tensor(checkpoint, "blk.1.nextn.eh_proj.weight", {16, 32});
  EXPECT_TRUE(build(checkpoint).ok());
  add_tensor(checkpoint, "blk.2.nextn.eh_proj.weight", {16, 32});
  const Result<Graph> graph = build(checkpoint);
  ASSERT_FALSE(graph.ok());
  expect_says(text_of(graph.error()), {"1 tensors", "blk.2.nextn.eh_proj.weight is not used"});
}

TEST(ExpertsConfig, PredictionLayersOutOfRange) {
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{2}, std::int64_t{1} << 62}) {
    Checkpoint checkpoint = made_gguf();
    checkpoint.metadata.add_integer("llama.nextn_predict_layers", count);
    EXPECT_FALSE(read_config(checkpoint).ok()) << count;
  }
}

// DeepSeek's GGUF with keys and values absorbed: n = 6, r = 4, R = 5, Ev = 3, the changed keys of `changes`.
Checkpoint absorbed_gguf(std::initializer_list<std::pair<const char*, std::int64_t>> changes = {}) {
  Checkpoint checkpoint;
  checkpoint.path = "made.gguf";
  checkpoint.metadata = Metadata("made.gguf");
  checkpoint.metadata.add_string("general.architecture", "deepseek2");
  std::map<std::string, std::int64_t> keys{
      {"embedding_length", 16},         {"block_count", 1},
      {"feed_forward_length", 24},      {"context_length", 64},
      {"attention.head_count", 4},      {"attention.head_count_kv", 1},
      {"attention.key_length", 9},      {"attention.value_length", 5},
      {"attention.key_length_mla", 10}, {"attention.value_length_mla", 3},
      {"attention.kv_lora_rank", 5},    {"rope.dimension_count", 4},
      {"leading_dense_block_count", 1}, {"expert_count", 2},
      {"expert_used_count", 1},         {"expert_feed_forward_length", 6}};
  for (const auto& [key, value] : changes) keys[key] = value;
  for (const auto& [key, value] : keys) checkpoint.metadata.add_integer("deepseek2." + key, value);
  checkpoint.metadata.add_real("deepseek2.attention.layer_norm_rms_epsilon", 1e-5);
  const std::pair<const char*, std::vector<std::int64_t>> tensors[] = {
      {"token_embd.weight", {32, 16}},         {"output_norm.weight", {16}},
      {"blk.0.attn_norm.weight", {16}},        {"blk.0.attn_q.weight", {40, 16}},
      {"blk.0.attn_kv_a_mqa.weight", {9, 16}}, {"blk.0.attn_kv_a_norm.weight", {5}},
      {"blk.0.attn_k_b.weight", {4, 5, 6}},    {"blk.0.attn_v_b.weight", {4, 3, 5}},
      {"blk.0.attn_output.weight", {16, 12}},  {"blk.0.ffn_norm.weight", {16}},
      {"blk.0.ffn_gate.weight", {24, 16}},     {"blk.0.ffn_up.weight", {24, 16}},
      {"blk.0.ffn_down.weight", {16, 24}}};
  for (const auto& [name, shape] : tensors) add_tensor(checkpoint, name, shape);
  return checkpoint;
}

TEST(ExpertsConfig, AbsorbedKeysAndValues) {
  const Checkpoint checkpoint = absorbed_gguf();
  const Result<ModelConfig> config = read_config(checkpoint);
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  EXPECT_TRUE(config->latent.absorbed);
  EXPECT_EQ(config->latent.nope_dim, 6);
  EXPECT_EQ(config->head_dim, 10);
  EXPECT_EQ(config->v_head_dim, 3);
  EXPECT_EQ(config->kv_heads, 1);
  EXPECT_DOUBLE_EQ(config->attention_scale, 1 / std::sqrt(10.0));
  const Result<Graph> graph = build_graph(checkpoint, *config, {});
  ASSERT_TRUE(graph.ok()) << text_of(graph.error());
  int states = 0;
  for (const GraphInput& input : graph->inputs) {
    if (input.kind != InputKind::State) continue;
    ++states;
    EXPECT_EQ(input.name, "k.0");
    EXPECT_EQ(graph->type(input.value).shape.back(), Dim(9));
  }
  EXPECT_EQ(states, 1);
}

TEST(ExpertsConfig, AbsorbedSizesMustAgree) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::pair<const char*, std::int64_t> changes[] = {
      {"attention.key_length", 10},      {"attention.key_length", kHuge},
      {"attention.value_length", 3},     {"attention.head_count_kv", 4},
      {"attention.key_length_mla", 4},   {"attention.key_length_mla", -1},
      {"attention.value_length_mla", 0}, {"attention.value_length_mla", kHuge},
      {"attention.kv_lora_rank", 6},     {"attention.kv_lora_rank", kHuge},
      {"rope.dimension_count", 6},       {"rope.dimension_count", kHuge}};
  for (const auto& change : changes) {
    EXPECT_FALSE(read_config(absorbed_gguf({change})).ok()) << change.first << " = " << change.second;
  }
  const Result<ModelConfig> config =
      read_config(absorbed_gguf({{"attention.key_length", 10}, {"attention.head_count_kv", 4}}));
  ASSERT_FALSE(config.ok());
  expect_says(text_of(config.error()),
              {"attention.key_length", "expected 9, not 10", "attention.head_count_kv"});
  // Without the keys the file must have kv_b, and says so.
  Checkpoint expanded = absorbed_gguf({{"attention.key_length_mla", 0},
                                       {"attention.value_length_mla", 0},
                                       {"attention.key_length", 10},
                                       {"attention.value_length", 3}});
  const Result<Graph> graph = build(expanded);
  ASSERT_FALSE(graph.ok());
  expect_says(text_of(graph.error()),
              {"blk.0.attn_kv_b.weight is missing", "blk.0.attn_k_b.weight is not used"});
}

TEST(ExpertsConfig, SizesOutOfRange) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::pair<const char*, std::int64_t> changes[] = {{"n_routed_experts", -1},
                                                          {"n_routed_experts", kHuge},
                                                          {"num_experts_per_tok", 0},
                                                          {"num_experts_per_tok", 9},
                                                          {"num_experts_per_tok", 5},
                                                          {"moe_intermediate_size", kHuge},
                                                          {"moe_intermediate_size", 0},
                                                          {"n_group", 3},
                                                          {"n_group", 0},
                                                          {"n_group", 8},
                                                          {"topk_group", 5},
                                                          {"topk_group", -2},
                                                          {"n_shared_experts", kHuge},
                                                          {"n_shared_experts", -kHuge},
                                                          {"first_k_dense_replace", -1},
                                                          {"kv_lora_rank", -3},
                                                          {"kv_lora_rank", 0},
                                                          {"kv_lora_rank", kHuge},
                                                          {"q_lora_rank", -1},
                                                          {"qk_nope_head_dim", kHuge},
                                                          {"qk_nope_head_dim", 0},
                                                          {"qk_rope_head_dim", 3},
                                                          {"qk_rope_head_dim", kHuge},
                                                          {"v_head_dim", 0},
                                                          {"v_head_dim", -kHuge}};
  for (const auto& [key, value] : changes) {
    const Result<ModelConfig> config = read_config(made_folder(with(key, value)));
    EXPECT_FALSE(config.ok()) << key << " = " << value;
  }
}

// Each tensor that is missing has its name in one message; nothing is built by half.
TEST(ExpertsConfig, MissingExpertsAreNamedOneByOne) {
  nlohmann::json json = llama_json();
  json["model_type"] = "qwen3_moe";
  json["num_experts"] = 3;
  json["num_experts_per_tok"] = 2;
  json["moe_intermediate_size"] = 6;
  Checkpoint checkpoint = made_folder(json);
  add_tensor(checkpoint, "model.layers.0.mlp.experts.1.up_proj.weight", {6, 16});
  add_tensor(checkpoint, "model.layers.1.mlp.experts.2.down_proj.weight", {6, 16});
  const Result<ModelConfig> config = read_config(checkpoint);
  ASSERT_TRUE(config.ok()) << text_of(config.error());
  const Result<Graph> graph = build_graph(checkpoint, *config, {});
  ASSERT_FALSE(graph.ok());
  const std::string text = text_of(graph.error());
  for (const char* wanted :
       {"model.layers.0.mlp.experts.0.up_proj.weight is missing",
        "model.layers.0.mlp.experts.2.up_proj.weight is missing", "model.layers.1.mlp.gate.weight is missing",
        "model.layers.1.mlp.experts.2.down_proj.weight is [6,16], not [16,6]"}) {
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " in\n" << text;
  }
  EXPECT_EQ(text.find("model.layers.0.mlp.experts.1.up_proj.weight is missing"), std::string::npos);
}

}  // namespace
}  // namespace hone::test
