// Tensors that do not fit a family, and keys it does not support: all in one message.
#include "model/weights.h"

#include "made_checkpoint.h"

namespace hone::test {
namespace {

TensorEntry& tensor(Checkpoint& checkpoint, std::string_view name) {
  for (TensorEntry& entry : checkpoint.tensors) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << name;
  return checkpoint.tensors.front();
}

Error error_of(const Checkpoint& checkpoint) {
  const Result<Graph> graph = build(checkpoint);
  if (!graph.ok()) return graph.error();
  ADD_FAILURE() << "built";
  return {};
}

// The promise: three unknown tensors and two unsupported keys, all five at once.
TEST(Weights, UnknownTensorsAndUnsupportedKeysInOneMessage) {
  nlohmann::json json = llama_json();
  json["clip_qkv"] = 8;
  json["logit_scale"] = 0.0625;
  Checkpoint folder = made_folder(json);
  add_tensor(folder, "model.layers.0.self_attn.q_prj.weight", {16, 16});
  add_tensor(folder, "model.layers.1.mlp.router.weight", {4, 16});
  add_tensor(folder, "vision.tower", {3});
  const Error error = error_of(folder);
  EXPECT_EQ(error.code, ErrorCode::BadModel);
  EXPECT_EQ(error.fault, Fault::File);
  expect_says(text_of(error), {"2 keys", "3 tensors", "key clip_qkv = 8", "key logit_scale = 0.0625",
                               "model.layers.0.self_attn.q_prj.weight is not used by this family (nearest: "
                               "model.layers.0.self_attn.q_proj.weight)",
                               "model.layers.1.mlp.router.weight", "vision.tower"});

  Checkpoint gguf = made_gguf();
  gguf.metadata.add_real("llama.attention.clamp_kqv", 8);
  gguf.metadata.add_real("llama.logit_scale", 0.0625);
  add_tensor(gguf, "blk.0.attn_qq.weight", {16, 16});
  add_tensor(gguf, "blk.1.ffn_gates.weight", {4, 16});
  add_tensor(gguf, "v.blk.0", {3});
  expect_says(
      text_of(error_of(gguf)),
      {"2 keys", "3 tensors", "llama.attention.clamp_kqv = 8", "llama.logit_scale = 0.0625",
       "blk.0.attn_qq.weight is not used by this family (nearest: blk.0.attn_q.weight)",
       "blk.1.ffn_gates.weight is not used by this family (nearest: blk.1.ffn_gate.weight)", "v.blk.0"});
}

TEST(Weights, MissingAndMisshapenTensorsInOneMessage) {
  Checkpoint folder = made_folder(llama_json());
  tensor(folder, "model.layers.1.mlp.up_proj.weight").name = "model.layers.1.mlp.upp_proj.weight";
  tensor(folder, "model.layers.0.self_attn.k_proj.weight").shape = {16, 16};
  tensor(folder, "model.norm.weight").dtype = DType::I32;
  tensor(folder, "model.norm.weight").type_name = "i32";
  expect_says(
      text_of(error_of(folder)),
      {"4 tensors", "model.layers.1.mlp.up_proj.weight is missing",
       "model.layers.1.mlp.upp_proj.weight is not used by this family (nearest: "
       "model.layers.1.mlp.up_proj.weight)",
       "model.layers.0.self_attn.k_proj.weight is [16,16], not [8,16]", "model.norm.weight has type i32"});
}

TEST(Weights, BiasesAreWhatTheConfigSays) {
  nlohmann::json json = llama_json();
  Checkpoint folder = made_folder(json);
  add_tensor(folder, "model.layers.0.self_attn.q_proj.bias", {16});
  expect_says(text_of(error_of(folder)), {"1 tensors", "model.layers.0.self_attn.q_proj.bias is not used"});
  json["attention_bias"] = true;
  Checkpoint biased = made_folder(json);
  add_tensor(biased, "model.layers.0.self_attn.q_proj.bias", {16});
  const std::string text = text_of(error_of(biased));
  expect_says(text, {"7 tensors", "model.layers.0.self_attn.o_proj.bias is missing",
                     "model.layers.1.self_attn.v_proj.bias is missing"});
  EXPECT_EQ(text.find("layers.0.self_attn.q_proj.bias"), std::string::npos) << text;
  // GGUF has no key for them: they are used where they are.
  Checkpoint gguf = made_gguf();
  add_tensor(gguf, "blk.0.attn_q.bias", {16});
  EXPECT_TRUE(build(gguf).ok());
}

TEST(Weights, ATiedHeadIsLeftOutWithAWarning) {
  Checkpoint folder = made_folder(llama_json());
  add_tensor(folder, "lm_head.weight", {32, 16});
  add_tensor(folder, "model.layers.0.self_attn.rotary_emb.inv_freq", {2});
  const Result<ModelConfig> config = read_config(folder);
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config->warnings.size(), 1U);
  expect_says(config->warnings[0], {"lm_head.weight"});
  EXPECT_TRUE(build(folder).ok());
  nlohmann::json json = llama_json();
  json["tie_word_embeddings"] = false;
  expect_says(text_of(error_of(made_folder(json))), {"lm_head.weight is missing"});
}

TEST(Weights, ThousandsOfUnknownTensorsStayOneShortMessage) {
  Checkpoint folder = made_folder(llama_json());
  for (int i = 0; i < 5000; ++i) add_tensor(folder, fmt::format("model.layers.{}.other.weight", i), {1});
  const std::string text = text_of(error_of(folder));
  EXPECT_LT(text.size(), 20'000U);
  expect_says(text, {"4936 more tensors"});
}

}  // namespace
}  // namespace hone::test
