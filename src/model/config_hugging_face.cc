// config.json of a Hugging Face folder, in the form that checkpoints had before transformers 5 (rope_theta,
// rope_scaling, torch_dtype) and in the one since (rope_parameters, dtype).
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/config_experts.h"
#include "model/config_faults.h"
#include "model/config_json.h"
#include "model/family.h"

namespace hone {
namespace {

using enum KeyUse;

constexpr std::array kHuggingFaceKeys{
    KeyRow{"model_type"},
    KeyRow{"hidden_size"},
    KeyRow{"num_hidden_layers"},
    KeyRow{"num_attention_heads"},
    KeyRow{"num_key_value_heads"},
    KeyRow{"head_dim"},
    KeyRow{"intermediate_size"},
    KeyRow{"vocab_size"},
    KeyRow{"max_position_embeddings"},
    KeyRow{"rms_norm_eps"},
    KeyRow{"tie_word_embeddings"},
    KeyRow{"hidden_act"},
    KeyRow{"hidden_activation", Used, "gemma2 gemma3", "null|\"silu\""},
    KeyRow{"rope_theta"},
    KeyRow{"rope_scaling"},
    KeyRow{"rope_parameters"},
    KeyRow{"rope_local_base_freq", Used, "gemma3", "null"},
    KeyRow{"partial_rotary_factor", Used, "phi3 glm4", "null|1|1.0"},
    KeyRow{"original_max_position_embeddings"},
    KeyRow{"attention_bias", Used, "llama qwen3 glm4 gemma2 gemma3 olmo2 qwen3_moe deepseek", "false|null"},
    KeyRow{"mlp_bias", Used, "llama", "false|null"},
    KeyRow{"qkv_bias", Used, "qwen2_moe", "false|null"},
    KeyRow{"decoder_sparse_step", Used, "qwen2_moe qwen3_moe", "1|null"},
    KeyRow{"mlp_only_layers", Used, "qwen2_moe qwen3_moe", "[]|null"},
    KeyRow{"n_group", Used, "deepseek", "1|null"},
    KeyRow{"topk_method", Used, "deepseek", "null"},
    KeyRow{"scoring_func", Used, "deepseek", "null"},
    KeyRow{"qk_nope_head_dim", Used, "deepseek"},
    KeyRow{"qk_rope_head_dim", Used, "deepseek"},
    KeyRow{"v_head_dim", Used, "deepseek"},
    KeyRow{"rope_interleave", Used, "deepseek"},
    KeyRow{"moe_layer_freq", Refused, "", "1|null"},
    KeyRow{"num_nextn_predict_layers", Used, "deepseek", "0|null"},
    KeyRow{"sliding_window", Used, "mistral qwen2 qwen3 qwen2_moe qwen3_moe phi3 gemma2 gemma3", "null"},
    KeyRow{"use_sliding_window", Used, "qwen2 qwen3 qwen2_moe qwen3_moe", "false|null"},
    KeyRow{"max_window_layers", Used, "qwen2 qwen3 qwen2_moe qwen3_moe"},
    KeyRow{"layer_types"},
    KeyRow{"sliding_window_pattern", Used, "gemma3", "null"},
    KeyRow{"_sliding_window_pattern", Used, "gemma3", "null"},
    KeyRow{"query_pre_attn_scalar", Used, "gemma2 gemma3"},
    KeyRow{"attn_logit_softcapping", Used, "gemma2 gemma3", "null"},
    KeyRow{"final_logit_softcapping", Used, "gemma2 gemma3", "null"},

    KeyRow{"add_cross_attention", Refused, "", "false"},
    KeyRow{"alibi", Refused, "", "false"},
    KeyRow{"attention_chunk_size", Refused, "", "null"},
    KeyRow{"attention_multiplier", Refused, "", "1|1.0"},
    KeyRow{"attention_sink", Refused, "", "false|null"},
    KeyRow{"clip_qkv", Refused, "", "null"},
    KeyRow{"embedding_multiplier", Refused, "", "1|1.0"},
    KeyRow{"first_k_dense_replace", Used, "deepseek", "0"},
    KeyRow{"is_encoder_decoder", Refused, "", "false"},
    KeyRow{"kv_lora_rank", Used, "deepseek", "null"},
    KeyRow{"logit_scale", Refused, "", "null|1|1.0"},
    KeyRow{"logits_scaling", Refused, "", "1|1.0"},
    KeyRow{"moe_intermediate_size", Used, "qwen2_moe qwen3_moe deepseek", "null|0"},
    KeyRow{"n_routed_experts", Used, "deepseek", "null|0"},
    KeyRow{"n_shared_experts", Used, "deepseek", "null|0"},
    KeyRow{"no_rope_layers", Refused, "", "null|[]"},
    KeyRow{"norm_topk_prob", Used, "qwen2_moe qwen3_moe deepseek", "null|false"},
    KeyRow{"num_experts", Used, "qwen2_moe qwen3_moe", "null|0"},
    KeyRow{"num_experts_per_tok", Used, "qwen2_moe qwen3_moe deepseek", "null|0"},
    KeyRow{"num_local_experts", Used, "qwen2_moe qwen3_moe", "null|0"},
    KeyRow{"parallel_residual", Refused, "", "false|null"},
    KeyRow{"q_lora_rank", Used, "deepseek", "null"},
    KeyRow{"qk_layernorm", Refused, "", "false|null"},
    KeyRow{"quantization_config", Refused, "", "null"},
    KeyRow{"compression_config", Refused, "", "null"},
    KeyRow{"residual_multiplier", Refused, "", "1|1.0"},
    KeyRow{"rope_interleaved", Refused, "", "false|null"},
    KeyRow{"routed_scaling_factor", Used, "deepseek", "null|1|1.0"},
    KeyRow{"shared_expert_intermediate_size", Used, "qwen2_moe", "null|0"},
    KeyRow{"topk_group", Used, "deepseek", "null"},
    KeyRow{"use_bidirectional_attention", Refused, "", "false|null"},
    KeyRow{"use_parallel_residual", Refused, "", "false|null"},
    KeyRow{"use_qk_norm", Refused, "", "false|null"},

    KeyRow{"aux_loss_alpha", NoEffect},
    KeyRow{"ep_size", NoEffect},
    KeyRow{"qk_head_dim", NoEffect},
    KeyRow{"seq_aux", NoEffect},
    KeyRow{"_attn_implementation", NoEffect},
    KeyRow{"_attn_implementation_autoset", NoEffect},
    KeyRow{"_name_or_path", NoEffect},
    KeyRow{"architectures", NoEffect},
    KeyRow{"attention_dropout", NoEffect},
    KeyRow{"attn_implementation", NoEffect},
    KeyRow{"auto_map", NoEffect},
    KeyRow{"bos_token_id", NoEffect},
    KeyRow{"cache_implementation", NoEffect},
    KeyRow{"chunk_size_feed_forward", NoEffect},
    KeyRow{"dtype", NoEffect},
    KeyRow{"embd_pdrop", NoEffect},
    KeyRow{"eos_token_id", NoEffect},
    KeyRow{"finetuning_task", NoEffect},
    KeyRow{"hidden_dropout", NoEffect},
    KeyRow{"id2label", NoEffect},
    KeyRow{"initializer_range", NoEffect},
    KeyRow{"is_decoder", NoEffect},
    KeyRow{"is_llama_config", NoEffect},
    KeyRow{"label2id", NoEffect},
    KeyRow{"num_labels", NoEffect},
    KeyRow{"output_attentions", NoEffect},
    KeyRow{"output_hidden_states", NoEffect},
    KeyRow{"output_router_logits", NoEffect},
    KeyRow{"pad_token_id", NoEffect},
    KeyRow{"pretraining_tp", NoEffect},
    KeyRow{"problem_type", NoEffect},
    KeyRow{"resid_pdrop", NoEffect},
    KeyRow{"return_dict", NoEffect},
    KeyRow{"router_aux_loss_coef", NoEffect},
    KeyRow{"task_specific_params", NoEffect},
    KeyRow{"tokenizer_class", NoEffect},
    KeyRow{"torch_dtype", NoEffect},
    KeyRow{"torchscript", NoEffect},
    KeyRow{"transformers.js_config", NoEffect},
    KeyRow{"transformers_version", NoEffect},
    KeyRow{"unk_token_id", NoEffect},
    KeyRow{"unsloth_fixed", NoEffect},
    KeyRow{"use_cache", NoEffect},
};

void read_activation(const JsonReader& reader, ModelConfig& config, ConfigFaults& faults) {
  // Gemma's models read hidden_activation alone: hidden_act stands in old files without effect.
  const bool gemma = config.activation == Activation::GeluTanh;
  const std::string_view key = gemma ? "hidden_activation" : "hidden_act";
  const std::optional<std::string> name = reader.text(key);
  if (!name) return;
  if (*name == "silu" || *name == "swish") {
    config.activation = Activation::Silu;
  } else if (*name == "gelu_pytorch_tanh" || *name == "gelu_new") {
    config.activation = Activation::GeluTanh;
  } else {
    faults.add(reader.name(key), "hone does not have this activation", "silu or gelu_pytorch_tanh", *name);
  }
}

// Which layers slide: `layer_types` names each; else the family's derive() says.
void read_windows(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config,
                  ConfigFaults& faults) {
  if (json.contains("sliding_window")) config.sliding_window = reader.integer("sliding_window").value_or(0);
  const bool optional = in_list(find_row(kHuggingFaceKeys, "use_sliding_window")->families, config.family);
  if (optional && !reader.truth("use_sliding_window").value_or(false)) config.sliding_window = 0;
  const auto types = json.find("layer_types");
  if (types != json.end() && !types->is_null()) {
    if (!types->is_array() || static_cast<std::int64_t>(types->size()) != config.layers) {
      faults.add(reader.name("layer_types"), "each layer has a type",
                 fmt::format("a list of {}", config.layers), json_text(*types));
      return;
    }
    for (const nlohmann::json& type : *types) {
      const bool slides = type == "sliding_attention";
      if (!slides && type != "full_attention") {
        config.refused.push_back(fmt::format("key {} with {}", reader.name("layer_types"), json_text(type)));
        return;
      }
      config.sliding_layers.push_back(slides);
    }
  } else if (const auto first = reader.integer("max_window_layers"); first && config.sliding_window > 0) {
    for (std::int64_t i = 0; i < std::min<std::int64_t>(config.layers, 100'000); ++i) {
      config.sliding_layers.push_back(i >= *first);
    }
  }
  const std::string_view key =
      reader.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
  if (const auto period = reader.integer(key); period && config.sliding_layers.empty()) {
    if (*period < 1)
      faults.add(reader.name(key), "the period is too small", "1 or more", fmt::format("{}", *period));
    for (std::int64_t i = 0; *period >= 1 && i < std::min<std::int64_t>(config.layers, 100'000); ++i) {
      config.sliding_layers.push_back((i + 1) % *period != 0);
    }
  }
}

void read_sizes(const JsonReader& reader, ModelConfig& config) {
  config.dim = reader.need_integer("hidden_size");
  config.layers = reader.need_integer("num_hidden_layers");
  config.heads = reader.need_integer("num_attention_heads");
  config.ffn = reader.need_integer("intermediate_size");
  config.vocabulary = reader.need_integer("vocab_size");
  config.context_length = reader.need_integer("max_position_embeddings");
  config.norm_eps = reader.need_real("rms_norm_eps");
  config.kv_heads = reader.integer("num_key_value_heads").value_or(config.heads);
  config.head_dim = reader.integer("head_dim").value_or(config.dim / std::max<std::int64_t>(config.heads, 1));
}

void read_rest(const nlohmann::json& json, const JsonReader& reader, ModelConfig& config) {
  if (const auto tied = reader.truth("tie_word_embeddings")) config.tied = tied;
  if (const auto bias = reader.truth("attention_bias")) {
    config.qkv_bias = *bias ? Bias::Required : Bias::None;
    const bool qkv_only = config.family == "glm4";
    config.o_bias = *bias && !qkv_only ? Bias::Required : Bias::None;
  }
  if (reader.truth("mlp_bias").value_or(false)) config.feed_forward_bias = Bias::Required;
  const double scalar = reader.real("query_pre_attn_scalar").value_or(0);
  if (scalar > 0) config.attention_scale = 1 / std::sqrt(scalar);
  if (json.contains("attn_logit_softcapping")) {
    config.attention_softcap = reader.real("attn_logit_softcapping").value_or(0);
  }
  if (json.contains("final_logit_softcapping")) {
    config.final_softcap = reader.real("final_logit_softcapping").value_or(0);
  }
}

// A tied output matrix that the file holds all the same is left out, as transformers does.
void warn_of_tied_head(const Checkpoint& checkpoint, const Family& family, ModelConfig& config) {
  const std::string name = tensor_stem(family.names, config, "lm_head", 0) + ".weight";
  if (config.tied.value_or(false) && checkpoint.find_tensor(name) != nullptr) {
    config.warnings.push_back(
        fmt::format("{} was not used: tie_word_embeddings says that the embedding serves", name));
  }
}

}  // namespace

std::span<const KeyRow> hugging_face_keys() {
  return kHuggingFaceKeys;
}

Result<ModelConfig> read_hugging_face_config(const Checkpoint& checkpoint) {
  ConfigFaults faults(checkpoint.path);
  ModelConfig config;
  config.style = FileStyle::HuggingFace;
  config.qkv_bias = config.o_bias = config.feed_forward_bias = Bias::None;
  config.architecture = JsonReader(*checkpoint.config, "", faults).need_text("model_type");
  HONE_TRY(faults.check(config));
  const Family* family = HONE_TRY(
      find_family(config.architecture, config.style, fmt::format("{}, key model_type", checkpoint.path)));
  config.family = family->name;
  if (family->describe != nullptr) family->describe(config);
  const std::optional<nlohmann::json> inner = text_model_keys(checkpoint, config, faults);
  const nlohmann::json& json = inner ? *inner : *checkpoint.config;
  const JsonReader reader(json, inner ? "text_config." : "", faults);
  if (family->name == "chatglm3") {
    read_chatglm_keys(json, reader, config);
  } else {
    for (const auto& [key, value] : json.items())
      sort_key(kHuggingFaceKeys, key, reader.name(key), json_text(value), config);
    read_sizes(reader, config);
    read_activation(reader, config, faults);
    read_windows(json, reader, config, faults);
    read_rest(json, reader, config);
    read_rope_keys(json, reader, config, faults);
    read_expert_keys(json, reader, config, faults);
  }
  if (faults.empty()) complete(checkpoint, config, faults);
  HONE_TRY(faults.check(config));
  if (family->derive != nullptr) family->derive(config);
  warn_of_tied_head(checkpoint, *family, config);
  config.prediction_layers = near_range(reader.integer("num_nextn_predict_layers").value_or(0));
  warn_of_prediction_layers(checkpoint, "num_nextn_predict_layers", config);
  return config;
}

}  // namespace hone
